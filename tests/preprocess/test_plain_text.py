from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from preprocess.parallel_containers import libreoffice_en_de, segments

from hat_fairseq.data.plain_text import files, read
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record


def both(folder: Path, source: str, target: str) -> list[Record]:
    (folder / "train.source").write_bytes(source.encode())
    (folder / "train.target").write_bytes(target.encode())
    return list(find_reader(str(folder)).read("train", None, Counter()))


def test_documents_of_real_text(tmp_path: Path) -> None:
    documents = libreoffice_en_de()
    for side, language in enumerate(("en", "de")):
        text = "\n\n".join("\n".join(segments(document, side)) for document in documents)
        (tmp_path / f"train.en-de.{language}.gz").write_bytes(gzip.compress(text.encode()))
    found = files(tmp_path, "train")
    assert found == (tmp_path / "train.en-de.en.gz", tmp_path / "train.en-de.de.gz")
    read_back = list(read(*found))
    assert [(one.sentences, one.target) for one in read_back] == [(one.sentences, one.target) for one in documents]
    assert [one.id for one in read_back[:2]] == ["train-1", "train-2"]
    length = len(documents[0].sentences or ())
    assert read_back[0].origin == f"train.en-de.en.gz:1-{length}, train.en-de.de.gz:1-{length}"


def test_blank_lines_carriage_returns_and_byte_order_marks(tmp_path: Path) -> None:
    documents = both(tmp_path, "\ufeff\r\n a \r\nb\r\n\t\r\n\r\nc", "\nA\nB\n\n \nC\n")
    assert [(one.sentences, one.target) for one in documents] == [((" a ", "b"), ("A", "B")), (("c",), ("C",))]
    assert documents[1].origin == "train.source:6-6, train.target:6-6"


def test_documents_of_different_length_are_left_to_the_pipeline(tmp_path: Path) -> None:
    first, second = both(tmp_path, "a\nb\n\nc\n", "A\n\nC\n")
    assert (first.sentences, first.target, second.target) == (("a", "b"), ("A",), ("C",))


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a\n\nb\n", "A\nB\nC\n", r"different numbers .*number 1, .*train\.source:1-1 and .*train\.target:1-3"),
        ("a\nb\n\nc\n", "A\n\nB\nC\n", r"end on the same one; .*number 1, .*source:1-2 and .*target:1-1\. A segment"),
        ("a\nb\n\nc\n\nd\n", "A\nB\n\nC\n", r"different .*number 3, .*source:6-6 and .*target:nothing"),
        ("a\n\nb\n", "A\nB\n\nC\n\nD\n", r"are number 1, .*train\.source:1-1 and .*train\.target:1-2"),
    ],
)
def test_blank_lines_on_one_side_are_refused(source: str, target: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        both(tmp_path, source, target)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["train.source"], r"train\.target is missing; train\.source and train\.target go together"),
        (["train.en-de.de"], r"train\.en-de\.en is missing"),
        (
            ["train.en", "train.de"],
            r"train\.de and train\.en do not tell which is the source; rename them to train\.source",
        ),
        (["train.source", "train.target", "train.en-de.en"], r"are two sources of train; remove one"),
    ],
)
def test_files_must_tell_the_direction(names: list[str], message: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text("a\n")
    with pytest.raises(ValueError, match=message):
        files(tmp_path, "train")


def test_other_files_are_no_parallel_text(tmp_path: Path) -> None:
    for name in ("train.jsonl", "train.log", "valid.source", "notes.txt"):
        (tmp_path / name).write_text("{}\n")
    assert files(tmp_path, "train") is None
