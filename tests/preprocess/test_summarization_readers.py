"""What holds for all readers of summarization datasets: their figures, and the way through hat preprocess."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from releases import RELEASES, write_release

from hat_fairseq import cli
from hat_fairseq.data.readers import find_reader

NAMES = ["pubmed", "arxiv", "cnn_dm", "xsum", "samsum", "ami", "icsi"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "datasets_summarization.md"


@pytest.mark.parametrize("name", NAMES)
def test_the_size_of_the_release_is_stated_where_people_look(name: str) -> None:
    """In the text at the top of the reader, and on the page about the datasets."""
    reader = find_reader(name)
    assert tuple(reader.release) == reader.splits == ("train", "valid", "test")
    text, page = str(sys.modules[reader.read.__module__].__doc__), PAGE.read_text(encoding="utf-8")
    first = [f"{numbers[0]:,}" for numbers in reader.release.values()]
    assert [number for number in first if number not in text or number not in page] == []


SHORT = ["--max-source-tokens", "30", "--long-source", "truncate"]


@pytest.mark.parametrize("name", NAMES[:5])
def test_a_release_goes_through_hat_preprocess(name: str, tmp_path: Path) -> None:
    write_release(name, tmp_path / "release")
    options = f"--partial --bpe learned --num-codes 5 --out {tmp_path / 'out'}".split() + SHORT
    assert cli.main(["preprocess", name, "--root", str(tmp_path / "release"), *options]) == 0

    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in (tmp_path / "out/text").iterdir()}
    assert [len(lines[f"{split}.source"]) for split in ("train", "valid", "test")] == [3, 2, 2]
    assert max(len(line.split()) for line in lines["train.source"]) < 30
    documents = [json.loads(line) for line in lines["train.jsonl"]]
    assert all(document["target"] for document in documents)
    if name == "samsum":  # the marker, the name and its utterance have one label
        source, roles = (lines[f"train.{stream}"][0].split() for stream in ("source", "role"))
        assert source[0] == "<s>" and len(source) == len(roles)
        starts = [index for index, token in enumerate(source) if token == "<s>"]
        turns = [set(roles[begin:end]) for begin, end in zip(starts, [*starts[1:], len(source)], strict=True)]
        assert turns == [{turn["role"]} for turn in documents[0]["turns"][: len(starts)]] and {"S1"} in turns
    else:
        assert "train.role" not in lines


def test_an_incomplete_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--bpe", "learned", "--out", str(tmp_path / "out")]
    assert cli.main(["preprocess", "samsum", "--root", str(RELEASES / "samsum"), *options]) == 2
    assert "the split train has 3 documents, a complete release 14,732 or 14,731" in capsys.readouterr().err
