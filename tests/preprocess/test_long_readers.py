"""The readers of WikiHop, TriviaQA and the categories of arXiv on tiny releases, and what they refuse."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from releases import CATEGORIES, RELEASES, write_release

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Answer, Record
from triviaqa import find_answers


def read(name: str, split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader(name).read(split, root, Counter() if counts is None else counts))  # type: ignore[arg-type]


def test_questions_of_wikihop_have_their_candidates_and_documents() -> None:
    train, valid = (read("wikihop", split, RELEASES / "wikihop") for split in ("train", "valid"))
    assert [len(train), len(valid)] == [4, 2]
    query, documents = train[1].parts
    assert query == "person_of_page 1" and documents[0].startswith("Ben Koch paints bridges.") and len(documents) == 2
    assert train[1].choices == ("ben koch", "carla roth", "dov levi") and train[1].label == 0
    assert find_reader("wikihop").release == {"train": (43738,), "valid": (5129,)}


def test_every_place_of_an_alias_is_an_answer() -> None:
    counts: Counter[str] = Counter()
    train = read("triviaqa", "train", RELEASES / "triviaqa", counts)
    assert [record.id for record in train[:3]] == ["tc_0--Page_0.txt", "tc_0--Page_none.txt", "tc_1--Page_1.txt"]
    assert counts == Counter(pages_without_an_alias=2) and train[0].meta is None
    assert train[0].parts[1] == "Anna Berg paints ships.\n\nThe painter lives in Kiel. Anna Berg is old."
    assert train[0].answers == (Answer("Anna Berg", 0), Answer("Anna Berg", 52)) and train[1].answers == ()
    meta = read("triviaqa", "valid", RELEASES / "triviaqa")[0].meta
    assert meta == {"triviaqa": {"question": "tc_2", "answers": ["carla roth", "nobody at all"]}}


@pytest.mark.parametrize(
    ("text", "aliases", "expected"),
    [
        ("In New  York, new york's NEW-YORK", ["New York"], ["New  York", "new york", "NEW-YORK"]),
        ("New York City of York", ["York", "The New York City", "New York"], ["New York City", "York"]),
        ("Yorkshire; snow_york", ["York"], ["york"]),
        ("the U.S. and us", ["U.S.", "The"], ["the", "U.S"]),
        ("a b a b a", ["a b a"], ["b a", "b a"]),
        ("nothing", ["", "..."], []),
        ("Ångström, ÅNGSTRÖM", ["ångström"], ["Ångström", "ÅNGSTRÖM"]),
    ],
)
def test_words_are_compared_without_case_punctuation_and_articles(
    text: str, aliases: list[str], expected: list[str]
) -> None:
    found = find_answers(text, aliases)
    assert [answer.text for answer in found] == expected
    assert all(text[answer.start : answer.end] == answer.text for answer in found)


def test_papers_are_split_by_number_and_copies_stay_together(tmp_path: Path) -> None:
    write_release("arxiv_categories", tmp_path)
    splits = {split: read("arxiv_categories", split, tmp_path) for split in ("train", "valid", "test")}
    assert {split: len(records) for split, records in splits.items()} == {"train": 39, "valid": 1, "test": 4}
    ids = [record.id for records in splits.values() for record in records]
    assert sorted(ids) == sorted(f"{path.parent.name}/{path.stem}" for path in tmp_path.glob("*/*.txt"))
    assert {record.label for record in splits["train"]} == set(CATEGORIES)
    for records in splits.values():
        assert all(record.id.split("/")[0] == record.label == str(record.parts[0]).split()[0] for record in records)
        assert sum(record.id.split("/")[1].startswith("1500.00000") for record in records) in (0, 2)
    assert sum(number for (number,) in find_reader("arxiv_categories").release.values()) == 33388


HOP, TRIVIA, PAGE = "train.json", "qa/wikipedia-train.json", "evidence/wikipedia/Page_0.txt"


def changed(name: str, **changes: object) -> str:
    """A release of one question."""
    release = json.loads((RELEASES / name / (HOP if name == "wikihop" else TRIVIA)).read_text())
    questions = release if name == "wikihop" else release["Data"]
    questions[0].update(changes)
    return json.dumps(release)


REFUSED: list[tuple[str, str, str | None, str]] = [
    ("wikihop", HOP, None, r"train\.json is missing; the folder must hold train\.json and dev\.json"),
    ("wikihop", HOP, "{}", r"train\.json: expected a list of questions, found a dict"),
    ("wikihop", HOP, '[{"id":', r"train\.json:1: no JSON .*cut off\?"),
    ("wikihop", HOP, changed("wikihop", answer="x"), r"train\.json, question 0: the answer 'x' is none of its 2 cand"),
    ("triviaqa", TRIVIA, None, r"wikipedia-train\.json is missing"),
    ("triviaqa", PAGE, None, r"Page_0\.txt is missing; the folder must hold"),
    ("triviaqa", TRIVIA, changed("triviaqa", Answer=None), r"train\.json, question tc_0: Answer must be"),
    ("triviaqa", TRIVIA, changed("triviaqa", EntityPages=[{}]), r"question tc_0: EntityPages: there is no Filename"),
]


@pytest.mark.parametrize(("name", "file", "content", "message"), REFUSED)
def test_what_is_no_release_is_refused(name: str, file: str, content: str | None, message: str, tmp_path: Path) -> None:
    write_release(name, tmp_path)
    (tmp_path / file).unlink() if content is None else (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        read(name, "train", tmp_path)
    with pytest.raises(ValueError, match="--root DIR is required: .* containing"):
        read(name, "train", None)


def test_a_category_without_papers_is_refused(tmp_path: Path) -> None:
    write_release("arxiv_categories", tmp_path)
    shutil.rmtree(tmp_path / "math.ST")
    with pytest.raises(
        ValueError, match=r"math\.ST has no \.txt files; --root must be a folder with the folders cs\.AI"
    ):
        read("arxiv_categories", "train", tmp_path)
