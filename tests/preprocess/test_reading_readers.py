"""The readers of SQuAD 2.0, RACE and C4 on tiny releases, and what they refuse."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from preprocess.containers import write_lines
from preprocess.encoder_containers import SPLITS, of, race_passage, squad_article, write_c4, write_race, write_squad2

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Answer, Record


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


# SQuAD 2.0


def test_questions_are_read_with_their_paragraphs(tmp_path: Path) -> None:
    write_squad2(tmp_path)
    assert [len(read("squad2", split, tmp_path)) for split in ("train", "valid")] == [18, 9]
    who, then, nothing = read("squad2", "valid", tmp_path)[:3]
    sentences = of("valid")[0]
    context = " ".join(sentences)
    name = " ".join(sentences[0].split()[:2])
    assert who.id == "6a" and who.parts == ("Who is this?", context)
    assert who.answers == (Answer(name, 0), Answer(name, 0))
    assert then.answers == (Answer(sentences[1], len(sentences[0]) + 1),)
    assert nothing.answers == (), "plausible answers are none"


def test_there_is_no_test_part_and_the_numbers_are_the_releases() -> None:
    reader = find_reader("squad2")
    assert reader.splits == ("train", "valid") and reader.release == {"train": (130319,), "valid": (11873,)}


def one_question(root: Path, **changes: Any) -> None:
    article = squad_article(of("train")[0], 0)
    article["paragraphs"][0]["qas"][0].update(changes)
    (root / "train-v2.0.json").write_text(json.dumps({"version": "v2.0", "data": [article]}))


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
    write_squad2(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("squad2", "train", tmp_path)


# RACE


def test_choices_go_into_the_blank_or_behind_the_question(tmp_path: Path) -> None:
    write_race(tmp_path)
    counts: Counter[str] = Counter()
    assert [len(read("race", split, tmp_path)) for split in ("train", "test")] == [12, 6]
    plain, blank = read("race", "valid", tmp_path, counts)[:2]
    passage = race_passage(of("valid")[0], SPLITS["valid"][0])
    options = passage["options"][0]
    assert plain.parts == blank.parts == (passage["article"],)
    assert plain.choices == tuple(f"What is said? {option}" for option in options)
    assert blank.choices == tuple(f"The passage says: {option} It is true." for option in options[::-1])
    assert (plain.label, blank.label) == ("0", "3") and (plain.id, blank.id) == ("middle/6-0", "middle/6-1")
    assert counts == Counter(questions_with_a_blank=3, questions_without_blank=3)


def test_every_blank_is_filled_as_in_fairseqs_preparation(tmp_path: Path) -> None:
    write_race(tmp_path)
    passage = {**race_passage(of("train")[0], 0), "questions": ["_ and _ are both .", "x"]}
    (tmp_path / "train/middle/0.txt").write_text(json.dumps(passage))
    first = read("race", "train", tmp_path)[0]
    option = passage["options"][0][0]
    assert first.choices[0] == f"{option} and {option} are both ."


def test_both_schools_are_read_files_by_their_numbers(tmp_path: Path) -> None:
    write_race(tmp_path)
    (tmp_path / "train/middle/10.txt").write_text(json.dumps(race_passage(of("test")[1], 10)))
    names = [example.id for example in read("race", "train", tmp_path)]
    assert names[::2] == [f"middle/{number}-0" for number in (0, 1, 2, 3, 4, 10)] + ["high/5-0"]


def one_passage(root: Path, **changes: Any) -> None:
    (root / "train/middle/0.txt").write_text(json.dumps({**race_passage(of("train")[0], 0), **changes}))


REFUSED_RACE: list[tuple[Callable[[Path], object], str]] = [
    (
        lambda root: (root / "train/high/5.txt").unlink(),
        r"train/high has no \.txt files; --root must be a folder",
    ),
    (lambda root: (root / "train/middle/0.txt").write_text("{"), r"middle/0\.txt:1: no JSON .*is the file cut off\?"),
    (lambda root: (root / "train/middle/0.txt").write_text("[]"), r"middle/0\.txt: expected a JSON object, found \[\]"),
    (lambda root: one_passage(root, article=None), r"middle/0\.txt: article must be a string, not None"),
    (lambda root: one_passage(root, answers=["A"]), r"0\.txt: 2 questions, 2 options, 1 answers"),
    (lambda root: one_passage(root, answers=["A", "E"]), r"0\.txt, question 1: the answer is 'E', not A, B, C or D"),
    (lambda root: one_passage(root, answers=["AB", "A"]), r"0\.txt, question 0: the answer is 'AB', not A, B, C or D"),
    (
        lambda root: one_passage(root, options=[["a"], ["b"]]),
        r"question 0: expected four options as strings, found \[",
    ),
    (
        lambda root: one_passage(root, options=["abcd", "efgh"]),
        r"0\.txt: each item of options must be a list, not 'abcd'",
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_RACE)
def test_what_is_no_race_is_refused(change: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write_race(tmp_path)
    change(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("race", "train", tmp_path)


# C4


def test_long_pages_are_kept_and_short_ones_counted(tmp_path: Path) -> None:
    write_c4(tmp_path)
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
