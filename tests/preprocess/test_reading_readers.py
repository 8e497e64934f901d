"""The readers of SQuAD 2.0, RACE and C4 on tiny releases, and what they refuse."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from releases import RELEASES, write_lines, write_release

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Answer, Record


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


# SQuAD 2.0


def test_questions_are_read_with_their_paragraphs() -> None:
    assert [len(read("squad2", split, RELEASES / "squad2")) for split in ("train", "valid")] == [12, 6]
    who, where, nothing = read("squad2", "valid", RELEASES / "squad2")[:3]
    context = "Eva Lind paints maps. The painter lives in Malmö. Many people bought pictures of maps."
    assert who.id == "4a" and who.parts == ("Who paints?", context)
    assert who.answers == (Answer("Eva Lind", 0), Answer("Eva Lind", 0))
    assert where.answers == (Answer("The painter lives in Malmö.", 22),)
    assert nothing.answers == (), "plausible answers are none"


def test_there_is_no_test_part_and_the_numbers_are_the_releases() -> None:
    reader = find_reader("squad2")
    assert reader.splits == ("train", "valid") and reader.release == {"train": (130319,), "valid": (11873,)}


def one_question(root: Path, **changes: Any) -> None:
    release = json.loads((RELEASES / "squad2/train-v2.0.json").read_text())
    release["data"][0]["paragraphs"][0]["qas"][0].update(changes)
    (root / "train-v2.0.json").write_text(json.dumps(release))


REFUSED_SQUAD: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: (root / "train-v2.0.json").unlink(), r"train-v2\.0\.json is missing; the folder must hold train-v2"),
    (lambda root: (root / "train-v2.0.json").write_text('{"version":\n'), r"json:\d: no JSON .*is the file cut off\?"),
    (lambda root: (root / "train-v2.0.json").write_text('{"version": "1.1"}'), r"no SQuAD 2\.0, its version is not v2"),
    (
        lambda root: (root / "train-v2.0.json").write_text('{"version": "v2.0"}'),
        "there is no data",
    ),
    (lambda root: one_question(root, is_impossible=True), r"question 0a: 2 answers, but is_impossible is True"),
    (lambda root: one_question(root, answers=[], is_impossible=False), r"0a: 0 answers, but is_impossible is False"),
    (lambda root: one_question(root, question=7), r"question 0a: question must be a string, not 7"),
    (lambda root: one_question(root, answers=[{"text": "x"}]), r"question 0a: answers: there is no answer_start"),
    (lambda root: one_question(root, answers=[{"text": "x", "answer_start": 0}]), r"the answer 'x' does not stand at"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_SQUAD)
def test_what_is_no_squad_is_refused(change: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write_release("squad2", tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("squad2", "train", tmp_path)


# RACE


def test_choices_go_into_the_blank_or_behind_the_question() -> None:
    counts: Counter[str] = Counter()
    plain, blank = read("race", "valid", RELEASES / "race", counts)[:2]
    options = [f"People like {things}." for things in ("ships", "bridges", "birds", "clocks")]
    article = "Anna Berg paints ships.\nThe painter lives in Kiel.\nMany people bought pictures of ships."
    assert plain.parts == blank.parts == (article,)
    assert plain.choices == tuple(f"What is said? {option}" for option in options)
    assert blank.choices == tuple(f"The passage says: {option} It is true." for option in options[::-1])
    assert (plain.label, blank.label) == (0, 3) and (plain.id, blank.id) == ("middle/6-0", "middle/6-1")
    assert counts == Counter(questions_with_a_blank=2, questions_without_blank=2)


def test_both_schools_are_read_files_by_their_numbers() -> None:
    names = [example.id for example in read("race", "train", RELEASES / "race")]
    assert names == ["middle/2-0", "middle/2-1", "middle/10-0", "middle/10-1", "high/5-0", "high/5-1"]


def one_passage(root: Path, **changes: Any) -> None:
    passage = json.loads((RELEASES / "race/train/middle/2.txt").read_text())
    (root / "train/middle/2.txt").write_text(json.dumps({**passage, **changes}))


def test_every_blank_is_filled_as_in_fairseqs_preparation(tmp_path: Path) -> None:
    write_release("race", tmp_path)
    one_passage(tmp_path, questions=["_ and _ are both .", "x"])
    first = read("race", "train", tmp_path)[0]
    assert first.choices[0] == "People like birds. and People like birds. are both ."


REFUSED_RACE: list[tuple[Callable[[Path], object], str]] = [
    (
        lambda root: (root / "train/high/5.txt").unlink(),
        r"train/high has no \.txt files; --root must be a folder",
    ),
    (lambda root: (root / "train/middle/2.txt").write_text("{"), r"middle/2\.txt:1: no JSON .*is the file cut off\?"),
    (lambda root: (root / "train/middle/2.txt").write_text("[]"), r"middle/2\.txt: expected a JSON object, found \[\]"),
    (lambda root: one_passage(root, article=None), r"middle/2\.txt: article must be a string, not None"),
    (lambda root: one_passage(root, answers=["A"]), r"2\.txt: 2 questions, 2 options, 1 answers"),
    (lambda root: one_passage(root, answers=["A", "E"]), r"2\.txt, question 1: the answer is 'E', not A, B, C or D"),
    (lambda root: one_passage(root, answers=["AB", "A"]), r"2\.txt, question 0: the answer is 'AB', not A, B, C or D"),
    (
        lambda root: one_passage(root, options=[["a"], ["b"]]),
        r"question 0: expected four options as strings, found \[",
    ),
    (
        lambda root: one_passage(root, options=["abcd", "efgh"]),
        r"2\.txt: each item of options must be a list, not 'abcd'",
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_RACE)
def test_what_is_no_race_is_refused(change: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write_release("race", tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("race", "train", tmp_path)


# C4


def test_long_pages_are_kept_and_short_ones_counted(tmp_path: Path) -> None:
    write_release("c4", tmp_path)
    counts: Counter[str] = Counter()
    pages = read("c4", "train", tmp_path, counts)
    assert [page.id for page in pages] == ["c4-train.00000-of-00002:2", "c4-train.00001-of-00002:2"]
    assert counts == Counter(short_pages_dropped=2) and pages[0].label is None
    assert [page.id for page in read("c4", "valid", tmp_path)] == ["c4-validation.00000-of-00001:2"]


def test_the_limit_is_above_1024_words(tmp_path: Path) -> None:
    for number in (1024, 1025):
        write_lines(tmp_path / "c4-train.00000-of-01024.json", [{"text": "word " * number, "url": "", "timestamp": ""}])
        assert len(read("c4", "train", tmp_path)) == (number > 1024)


def test_what_is_no_c4_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no c4-train\.\*\.json\.gz; it must be a folder with c4-train"):
        read("c4", "train", tmp_path)
    write_lines(tmp_path / "c4-train.00000-of-01024.json", [{"content": "word"}])
    with pytest.raises(ValueError, match=r"c4-train\.00000-of-01024\.json:1: there is no text"):
        read("c4", "train", tmp_path)


@pytest.mark.parametrize("name", ["squad2", "race", "c4"])
def test_a_root_is_needed(name: str) -> None:
    with pytest.raises(ValueError, match="--root DIR is required: .* containing"):
        read(name, "train", None)
