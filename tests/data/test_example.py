"""Examples as JSON lines: what is read back, and what is refused, with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hat_fairseq.data.kinds import KINDS, Choice, LabelledText, Question
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.records_json import read_records, record_from_json, record_to_json


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "text"])
def test_written_and_read_back(kind: str, examples: dict[str, list[Record]], tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(record_to_json(example)) + "\n" for example in examples[kind]))
    read = list(read_records(path, kind))
    assert read == examples[kind] and len(read) > 2
    assert read[1].origin == f"{path}:2"
    gold = KINDS[kind].gold
    assert gold is None or all(getattr(example, gold) is not None for example in read)


def test_keys_become_inputs() -> None:
    record = {"id": "a", "segments": ["x", "y"], "question": "Why?", "choices": ["b", "c"], "label": 1}
    expected = Choice("a", segments=("x", "y"), choices=("Why? b", "Why? c"), label=1)
    assert record_from_json(record, "here", "choice") == expected
    record = {"id": "a", "text": "x", "second": ["y", "z"], "label": 3}
    assert record_from_json(record, "here", "classification") == LabelledText(
        "a", text="x", second=("y", "z"), label="3"
    )
    record = {"id": "a", "question": "q", "text": "x y", "answers": [{"text": "y", "start": 2}]}
    assert record_from_json(record, "here", "qa") == Question("a", "q", "x y", answers=(Answer("y", 2),))
    assert record_from_json({**record, "answers": []}, "here", "qa").answers == ()
    assert record_from_json({"id": "a", "words": ["x"]}, "here", "tokens").labels is None


def test_lines_without_id_are_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "a"}\n{"segments": ["b"]}\n')
    assert [example.id for example in read_records(tmp_path / "train.jsonl", "mlm")] == [
        "train.jsonl:1",
        "train.jsonl:2",
    ]


@pytest.mark.parametrize(
    ("kind", "record", "message"),
    [
        ("classification", {"text": "x"}, "there is no id"),
        (
            "classification",
            {"id": "a", "text": "x", "labels": ["y"]},
            "unknown key 'labels'; known are id",
        ),
        ("classification", {"id": "a", "text": "x", "label": ""}, "'a' has an empty label"),
        ("classification", {"id": "a", "text": "x", "label": 1.5}, "label must be a string, not 1.5"),
        ("classification", {"id": "a", "label": "x"}, "give exactly one of text, segments, not none"),
        ("choice", {"id": "a", "text": "x", "choices": ["y"], "label": 0}, "has 1 choices; at least two are needed"),
        (
            "choice",
            {"id": "a", "text": "x", "choices": ["y", "z"], "label": 2},
            "has the label 2; the choices have the numbers 0 to 1",
        ),
        ("choice", {"id": "a", "text": "x", "choices": ["y", "z"], "label": "1"}, "label must be a number, not '1'"),
        ("choice", {"id": "a", "text": "x", "choices": ["y", "z"], "label": True}, "label must be a number, not True"),
        ("tokens", {"id": "a", "words": ["x", True]}, "each item of words must be a string, not True"),
        (
            "segments",
            {"id": "a", "segments": ["x", "y"], "labels": ["z"]},
            "has 1 labels for 2 segments",
        ),
        ("segments", {"id": "a", "text": "x", "labels": ["z"]}, "unknown key 'text'"),
        ("tokens", {"id": "a", "words": "x y", "labels": ["z", "z"]}, "words must be a list, not 'x y'"),
        ("qa", {"id": "a", "text": "x"}, "there is no question"),
        ("qa", {"id": "a\tb", "text": "x", "question": "y"}, "contains a tab"),
        (
            "qa",
            {"id": "a", "question": "q", "text": "one two", "answers": [{"text": "two", "start": 3}]},
            "document 'a': the answer 'two' does not stand at character 3, where ' tw' stands",
        ),
        ("qa", {"id": "a", "question": "q", "text": "x", "answers": [{"text": "x", "start": -1}]}, "at character -1"),
        ("qa", {"id": "a", "question": "q", "text": "x", "answers": [{"text": "", "start": 0}]}, "the answer ''"),
        (
            "qa",
            {"id": "a", "question": "q", "text": "x", "answers": ["x"]},
            "of answers: expected a JSON object, found",
        ),
        ("mlm", {"id": "a", "text": "x", "label": "y"}, "unknown key 'label'"),
    ],
)
def test_bad_examples_are_refused(kind: str, record: dict, message: str, tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(ValueError) as error:
        list(read_records(path, kind))
    assert str(error.value).startswith(f"{path}:1: ") and message in str(error.value)


def test_an_id_occurs_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "x", "text": "a"}\n' * 2)
    with pytest.raises(ValueError, match=r"a\.jsonl:2: document id 'x' was used before, in line 1"):
        list(read_records(tmp_path / "a.jsonl", "mlm"))
