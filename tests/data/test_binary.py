"""Dictionaries and binary datasets have the bytes that fairseq-preprocess writes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from warm import WarmPython

from hat_fairseq.data import binarize
from hat_fairseq.data.binarize import Binarization, of_documents, of_rows
from hat_fairseq.data.dictionary import UNKNOWN, Dictionary

LINES = {
    "source": ["<s> a b@@ c <s> \ufeffd é \U0001f600", "<s> a a a", "", "<s> <unk> zzz madeupword0001 </s> <pad> b@@"],
    "target": ["a c", "\ufeffd", "x <sep> y x", "<s> never seen"],
}


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmPython]:
    with WarmPython() as process:
        yield process


def write_texts(folder: Path) -> None:
    (folder / "text").mkdir(parents=True)
    for side, lines in LINES.items():
        for split, part in (("train", lines), ("valid", lines[::-1]), ("test", lines[:1]), ("test1", lines[3:])):
            text = "".join(f"{line}\n" for line in part)
            (folder / f"text/{split}.{side}").write_text(text, encoding="utf-8", newline="\n")


def same_as_fairseq(folder: Path, calls: list[Binarization], warm: WarmPython, workers: int = 1) -> dict[str, int]:
    """Runs the commands of the calls, and what replaces them, in two copies of `folder`; returns the unknown tokens."""
    theirs, ours = folder / "theirs", folder / "ours"
    for copy in (theirs, ours):
        subprocess.run(["cp", "-r", folder / "data", copy], check=True)
    counts = {}
    for call in calls:
        command = call.command(workers)
        warm.run(command[command.index("-m") + 1 :], theirs, folder / "log")
        counts |= call.run(ours)
    files = {path.relative_to(theirs) for path in theirs.rglob("*") if path.is_file()}
    assert files == {path.relative_to(ours) for path in ours.rglob("*") if path.is_file()}
    assert len(files) > 8
    for name in sorted(files):
        if name.name == "preprocess.log":  # begins with the settings of fairseq, or with the command
            log = [(side / name).read_text(encoding="utf-8").splitlines() for side in (theirs, ours)]
            assert log[0][0].startswith("Namespace(") and "fairseq_cli.preprocess" in log[1][0]
            assert log[0][-len(log[1]) + 1 :] == log[1][1:] and len(log[1]) > 3
        else:
            assert (theirs / name).read_bytes() == (ours / name).read_bytes(), name
    return {text: found.unknown for text, found in counts.items()}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_joined_dictionary_and_both_sides(tmp_path: Path, workers: int, warm: WarmPython) -> None:
    write_texts(tmp_path / "data")
    splits = ("train", "valid", "test", "test1")
    unknown = same_as_fairseq(tmp_path, of_documents(splits, (), None, roles=False), warm, workers)
    assert set(unknown) == {f"{split}.{side}" for split in splits for side in LINES}
    assert set(unknown.values()) == {0}


def test_a_fixed_dictionary_counts_what_it_lacks(tmp_path: Path, warm: WarmPython) -> None:
    write_texts(tmp_path / "data")
    (tmp_path / "data/bin").mkdir()
    (tmp_path / "data/bin/dict.txt").write_text("a 7\nb@@ 3\na 1 #fairseq:overwrite\né 0\n", encoding="utf-8")
    (tmp_path / "data/text/role.labels").write_text("PM 1\nUI 1\n", encoding="utf-8")
    for split in ("train", "valid"):
        (tmp_path / f"data/text/{split}.role").write_text("PM PM\nUI\nUI ID\n\n", encoding="utf-8")
    commands = of_documents(("train", "valid"), (), Path("bin", "dict.txt"), roles=True)
    unknown = same_as_fairseq(tmp_path, commands, warm)
    assert unknown["train.source"] == 5 and unknown["train.role"] == 1  # an <unk> of the text is none


def test_examples_with_labels(tmp_path: Path, warm: WarmPython) -> None:
    write_texts(tmp_path / "data")
    for split in ("train", "valid"):
        (tmp_path / f"data/text/{split}.label").write_text("yes\nno\nyes\nno\n", encoding="utf-8")
    (tmp_path / "data/text/label.labels").write_text("no 1\nyes 1\n", encoding="utf-8")
    for name in ("input0", ""):
        commands = of_rows(("train", "valid"), ("train", "valid"), None, name)
        folder = tmp_path / f"in {name}"
        folder.mkdir()
        subprocess.run(["cp", "-r", tmp_path / "data", folder / "data"], check=True)
        same_as_fairseq(folder, commands, warm)


def test_a_large_dictionary_takes_four_bytes(tmp_path: Path, warm: WarmPython) -> None:
    (tmp_path / "data/text").mkdir(parents=True)
    (tmp_path / "data/bin").mkdir()
    for side in ("source", "target"):
        (tmp_path / f"data/text/train.{side}").write_text("w1 w65499 w70000 w0\n", encoding="utf-8")
    text = "".join(f"w{number} 1\n" for number in range(binarize._SMALL + 3))
    (tmp_path / "data/bin/dict.txt").write_text(text, encoding="utf-8")
    same_as_fairseq(tmp_path, of_documents(("train",), (), Path("bin", "dict.txt"), roles=False), warm)


@pytest.mark.parametrize(("text", "message"), [("a 1\nb\n", ":2: expected"), ("a 1\na 2\n", ":2: the symbol 'a'")])
def test_a_damaged_dictionary_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "dict.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        Dictionary.load(tmp_path / "dict.txt")


def test_dictionaries_are_read_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("b a a\nc b a\n", encoding="utf-8")
    built = Dictionary.build([tmp_path / "text"])
    assert built.counts[:3] == [("a", 3), ("b", 2), ("c", 1)] and len(built) == 8
    built.save(tmp_path / "dict.txt")
    again = Dictionary.load(tmp_path / "dict.txt")
    assert again.counts == built.counts and again.numbers == built.numbers
    assert again.numbers["never seen"] == UNKNOWN == again.numbers["<unk>"]
    assert "never seen" not in again.numbers
