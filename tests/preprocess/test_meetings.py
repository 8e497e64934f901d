from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from meetings import FILLERS, filter_words

ROLES = {"ami": {"ID", "ME", "PM", "UI"}, "icsi": {"Grad", "PhD", "Postdoc", "Professor", "Undergrad"}}


def read_all(corpus: str, counts: Counter[str]) -> dict[str, list[Record]]:
    reader = find_reader(corpus)
    return {split: list(reader.read(split, None, counts)) for split in reader.splits}


@pytest.mark.parametrize(
    ("corpus", "sizes", "turns", "removed"),
    [
        ("ami", [97, 20, 20], 39564, (1556, 10651, 1175)),
        ("icsi", [43, 10, 6], 27383, (591, 9948, 853)),
    ],
)
def test_the_carried_meetings_are_complete(
    corpus: str, sizes: list[int], turns: int, removed: tuple[int, int, int]
) -> None:
    counts: Counter[str] = Counter()
    meetings = read_all(corpus, counts)
    assert [len(split) for split in meetings.values()] == sizes
    ids = [meeting.id for split in meetings.values() for meeting in split]
    assert len(set(ids)) == len(ids)
    assert {role for split in meetings.values() for meeting in split for role in meeting.roles or ()} == ROLES[corpus]
    assert all(meeting.target for split in meetings.values() for meeting in split)
    names = ("fillers_removed", "stray_punctuation_removed", "turns_without_words_dropped")
    assert tuple(counts[name] for name in names) == removed
    kept = sum(len(meeting.sentences or ()) for split in meetings.values() for meeting in split)
    assert kept == turns - counts["turns_without_words_dropped"]


@pytest.mark.parametrize("corpus", ["ami", "icsi"])
def test_every_role_occurs_in_training(corpus: str) -> None:
    """The dictionary of the role stream is made of the training part."""
    training = list(find_reader(corpus).read("train", None, Counter()))
    assert {role for meeting in training for role in meeting.roles or ()} == ROLES[corpus]


def test_meaningless_words_are_left_out_and_nothing_else() -> None:
    for turn, kept in {
        "Right , both of them , .": "Right , both of them .",
        ". , Tu tu": "Tu tu",
        "Mm - hmm . And it 's user - friendly .": "And it 's user - friendly .",
        "What ? . No": "What ? No",
        "Ah - ha !": "",
        "- . Good .": "Good .",
    }.items():
        assert " ".join(filter_words(turn.split(), Counter())) == kept


def test_no_filler_is_left_in_the_meetings() -> None:
    meetings = read_all("icsi", Counter())
    texts = [turn for split in meetings.values() for meeting in split for turn in meeting.sentences or ()]
    words = {word for text in texts for word in text.lower().split()}
    assert not words & FILLERS and "yeah" in words


@pytest.mark.parametrize("corpus", ["ami", "icsi"])
def test_a_missing_file_is_named(corpus: str, tmp_path: Path) -> None:
    message = rf"{corpus}\.dev\.jsonl\.gz is missing; the folder must hold {corpus}\.train\.jsonl\.gz, {corpus}\.dev"
    with pytest.raises(ValueError, match=message):
        list(find_reader(corpus).read("valid", tmp_path, Counter()))
