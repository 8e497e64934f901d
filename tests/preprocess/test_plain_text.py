"""Parallel text: a file for each language, documents divided by blank lines."""

from collections import Counter
from pathlib import Path

import pytest

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record


def both(folder: Path, source: str, target: str) -> list[Record]:
    (folder / "train.source").write_bytes(source.encode())
    (folder / "train.target").write_bytes(target.encode())
    return list(find_reader(str(folder)).read("train", None, Counter()))


def test_blank_lines_carriage_returns_and_byte_order_marks(tmp_path: Path) -> None:
    documents = both(tmp_path, "\ufeff\r\n a \r\n\ufeffb\r\n\t\r\n\r\nc", "\nA\nB\n\n \nC\n")
    assert [(one.elements, one.target) for one in documents] == [((" a ", "\ufeffb"), ("A", "B")), (("c",), ("C",))]
    assert documents[1].origin == "train.source:6-6, train.target:6-6"


def test_blank_lines_on_one_side_are_refused(tmp_path: Path) -> None:
    first, second = both(tmp_path, "a\nb\n\nc\n", "A\n\nC\n")  # other numbers of segments are left to the pipeline
    assert (first.elements, first.target, second.target) == (("a", "b"), ("A",), ("C",))
    for source, target, message in (
        ("a\n\nb\n", "A\nB\nC\n", r"different numbers .*number 1, .*train\.source:1-1 and .*train\.target:1-3"),
        ("a\nb\n\nc\n", "A\n\nB\nC\n", r"end on the same one; .*number 1, .*source:1-2 and .*target:1-1\. A segment"),
        ("a\nb\n\nc\n\nd\n", "A\nB\n\nC\n", r"different .*number 3, .*source:6-6 and .*target:nothing"),
        ("a\n\nb\n", "A\nB\n\nC\n\nD\n", r"are number 1, .*train\.source:1-1 and .*train\.target:1-2"),
    ):
        with pytest.raises(ValueError, match=message):
            both(tmp_path, source, target)


def test_files_must_tell_the_direction(tmp_path: Path) -> None:
    for number, (names, message) in enumerate(
        (
            (["train.source"], r"train\.target is missing; train\.source and train\.target go together"),
            (["train.en-de.de"], r"train\.en-de\.en is missing"),
            (["train.source", "train.target", "train.en-de.en"], r"train\.en-de\.de is missing"),
            (["train.source", "train.target", "train.en-de.en", "train.en-de.de"], r"has the split train twice"),
        )
    ):
        (folder := tmp_path / str(number)).mkdir()
        for name in names:
            (folder / name).write_text("a\n")
        with pytest.raises(ValueError, match=message):
            find_reader(str(folder))
