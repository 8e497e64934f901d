"""A folder of one's own: what its splits may be called, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hat_fairseq import cli
from hat_fairseq.data.readers import find_reader

LINE = json.dumps({"id": "a", "text": "One cat runs.", "target": "A cat."}) + "\n"


def folder(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).write_text(LINE if ".jsonl" in name else "a\n")
    return path


@pytest.mark.parametrize("name", ["valid", "val", "dev", "validation"])
def test_the_validation_split_has_four_names(tmp_path: Path, name: str) -> None:
    reader = find_reader(str(folder(tmp_path, "train.jsonl", f"{name}.jsonl", "test.jsonl", "README.md")))
    assert reader.splits == ("train", "valid", "test")
    assert [document.id for document in reader.read("valid", None, Counter())] == ["a"]


def test_parallel_text_too(tmp_path: Path) -> None:
    reader = find_reader(str(folder(tmp_path, "train.source", "train.target", "dev.en-de.en", "dev.en-de.de")))
    assert reader.splits == ("train", "valid")
    assert [document.id for document in reader.read("valid", None, Counter())] == ["dev-1"]


def test_further_test_splits_have_numbers(tmp_path: Path) -> None:
    names = ["test10", "test2", *(f"test{number}" for number in (1, 3, 4, 5, 6, 7, 8, 9)), "test", "train"]
    reader = find_reader(str(folder(tmp_path, *(f"{name}.jsonl" for name in names))))
    assert reader.splits == ("train", "test", *(f"test{number}" for number in range(1, 11)))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train.jsonl", "dev.jsonl", "valid.jsonl"], "has the split valid twice"),
        (["train.jsonl", "train.source", "train.target"], "has the split train twice"),
        (["train.jsonl", "test1.jsonl"], "has the splits test1; fairseq numbers them test, test1, test2"),
        (["train.jsonl", "extra.jsonl"], "has extra.jsonl, which is no split"),
        (["train.jsonl", "test.tsv"], "has test.tsv, which is no split"),
        (["train.jsonl", "Valid.jsonl.gz"], "has Valid.jsonl.gz, which is no split"),
        (["train.jsonl", "test01.jsonl"], "has test01.jsonl, which is no split"),
        (["README.md"], "has no train.jsonl, valid.jsonl, test.jsonl"),
    ],
)
def test_other_files_are_named(tmp_path: Path, names: list[str], message: str, capsys) -> None:  # type: ignore[no-untyped-def]
    folder(tmp_path, *names)
    assert cli.main(["preprocess", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_key_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(LINE + '{"id": "b", "text": "x", "target": "y", "text": "z"}\n')
    with pytest.raises(ValueError, match=r"train\.jsonl:2: the key 'text' occurs twice in one object"):
        list(find_reader(str(tmp_path)).read("train", None, Counter()))
