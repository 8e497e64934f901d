"""Examples as JSON lines: what is read back, and what is refused, with file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Choice, Document, LabelledText, Question
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.records_json import read_records, record_from_json, record_to_json


def test_keys_become_inputs() -> None:
    record = {"id": "a", "segments": ["x", "y"], "question": "Why?", "choices": ["b", "c"], "label": 1}
    expected = Choice("a", segments=("x", "y"), question="Why?", choices=("b", "c"), label=1)
    assert record_from_json(record, "here", "choice") == expected
    assert expected.texts()[1:] == expected.continuations == ("Why? b", "Why? c")
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


def test_turns_of_a_text_to_pre_train_on() -> None:
    record = {"id": "a", "turns": [{"speaker": "Ada", "text": "One."}, {"text": "Two."}]}
    text = record_from_json(record, "here", "mlm")
    assert text.parts == (("One.", "Two."),)
    assert record_to_json(text) == record


def test_json_there_and_back(meetings: list[Record]) -> None:
    others = [Document("a", text="One. Two.", target=("x",)), Document("b", sentences=("One.", "Two."))]
    others += [Document("c", text="One.", target=("x",), other_references=(("y",), ("z", "w")))]
    for document in meetings + others:
        assert record_from_json(json.loads(json.dumps(record_to_json(document))), "here") == document


def test_question_and_meta_there_and_back() -> None:
    record = {"id": "a", "text": "x", "question": "Who?", "meta": {"source": ["b", 3]}}
    document = record_from_json(record, "f:1")
    assert document.parts == ("Who?", "x")
    assert document.meta == {"source": ["b", 3]}
    assert record_to_json(document) == record
    assert len({document}) == 1


def test_a_summary_is_a_target() -> None:
    assert record_from_json({"id": "a", "text": "x", "summary": "One .\nTwo ."}, "here").target == ("One .", "Two .")


SAID = {"id": "a", "sentences": ["x", "y"]}
ASKED = {**SAID, "questions": ["a", "b"]}


@pytest.mark.parametrize(
    ("kind", "record", "field", "value"),
    [
        ("text", {**SAID, "target": "One .\nTwo ."}, "target", ("One .", "Two .")),
        ("text", {**SAID, "meta": None}, "meta", None),
        ("classification", {"id": "a", "text": "x", "label": 3}, "label", "3"),
        ("classification", {"id": "a", "text": "x", "label": None}, "label", None),
        ("segments", {"id": "a", "segments": ["x", "y"], "labels": [-1, "b"]}, "labels", ("-1", "b")),
        ("tokens", {"id": "a", "words": ["x"], "labels": [0]}, "labels", ("0",)),
        ("sequence", {"id": "a", "tokens": ["x"], "label": 0}, "label", "0"),
        ("byte_sequence", {"id": "a", "text": "x", "label": 10}, "label", "10"),
        ("byte_pair", {"id": "a", "text": "x", "second": "y", "label": 1}, "label", "1"),
        ("choice", {"id": "a", "text": "x", "choices": ["b", "c"], "label": 1}, "label", 1),
        ("evidence", {**SAID, "questions": "a\nb"}, "questions", ("a", "b")),
        ("evidence", {**ASKED, "sentences": "x\ny"}, "sentences", ("x", "y")),
        ("evidence", {**ASKED, "evidence": "0, 1\n-"}, "evidence", ((0, 1), ())),
        ("evidence", {**ASKED, "lines": "-\n1"}, "lines", ((), (1,))),
    ],
)
def test_a_field_in_another_form(kind: str, record: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(record_from_json(record, "here", kind), field) == value


def test_the_place_of_a_record_is_its_origin() -> None:
    record = record_from_json({"id": "a", "text": "x"}, "b.jsonl:3")
    assert (record.origin, record.name) == ("b.jsonl:3", "document 'a' (b.jsonl:3)")
    with pytest.raises(ValueError, match="^b.jsonl:3: document 'a': give exactly one of text, turns, sentences"):
        record_from_json({"id": "a"}, "b.jsonl:3")


def test_a_turn_without_role_takes_its_speaker() -> None:
    turns = [{"speaker": "Ann", "text": "Hi"}, {"speaker": "Bob", "role": None, "text": "Hello"}]
    assert record_from_json({"id": "a", "turns": turns}, "here").roles == ("Ann", "Bob")


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes("\ufeffa\rb\u2028c\x0bd\ne\r\nf".encode())
    assert list(read_lines(path)) == [(1, "a\rb\u2028c\x0bd"), (2, "e\r"), (3, "f")]


def test_lone_carriage_returns_do_not_shift_documents(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"id": "a", "text": "x\\ry"}\r\n{"id": "b", "text":\r "z"}\n')
    assert [(document.id, document.text) for document in read_records(path)] == [("a", "x\ry"), ("b", "z")]
