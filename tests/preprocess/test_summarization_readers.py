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
# Rohde et al. 2021, Table 1: train, valid, test; words and tokens of the input, words and tokens of the output
TABLE_1 = """
pubmed 112K 6.6K 6.7K 3016 4016 178 258
arxiv 203K 6.4K 6.4K 6055 8613 280 362
cnn_dm 287K 13K 11K 781 906 56 63
xsum 204K 11K 11K 431 488 23 27
samsum 14.7K 818 819 94 147 20 26
ami 100 17 20 3156 4081 280 321
icsi 43 10 6 6228 7913 466 576
"""


@pytest.mark.parametrize("line", TABLE_1.split("\n")[1:-1])
def test_the_figures_of_the_paper_are_as_printed(line: str) -> None:
    name, *figures = line.split()
    paper = find_reader(name).paper
    keys = ("source_words", "source_tokens", "target_words", "target_tokens")
    assert [*paper["documents"].values(), *(paper[key] for key in keys)] == figures
    assert list(paper["documents"]) == ["train", "valid", "test"]


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
    options = f"--partial --bpe learned --num-codes 100 --out {tmp_path / 'out'}".split() + SHORT
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
