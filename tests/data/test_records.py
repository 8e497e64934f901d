"""Examples as JSON lines: what is read back, and what is refused, with file and line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from commands import write_lines

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


BAD_RECORDS: list[tuple[str, Any, str]] = [
    ("classification", {"text": "x"}, "there is no id"),
    ("classification", {"id": "a", "text": "x", "labels": ["y"]}, "unknown key 'labels'; known are id"),
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
    ("segments", {"id": "a", "segments": ["x", "y"], "labels": ["z"]}, "has 1 labels for 2 segments"),
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
    ("text", 7, "expected a JSON object"),
    ("text", {"id": "", "text": "x"}, "'': its id is empty"),
    ("text", {"id": 7, "text": "x"}, "id must be a string, not 7"),
    ("text", {"id": "a"}, "exactly one of text, turns, sentences, not none"),
    ("text", {"id": "a", "text": "x", "sentences": []}, "not text and sentences"),
    ("text", {"id": "a", "text": "x", "lang": "en"}, "unknown key 'lang'"),
    ("text", {"id": "a", "text": "x", "target": "y", "summary": "y"}, "two names for the same thing"),
    ("text", {"id": "a", "sentences": ["x", 3]}, "sentences must be a string, not 3"),
    ("text", {"id": "a", "turns": [{"text": "x", "mood": "good"}]}, "turns: unknown key 'mood'"),
    ("text", {"id": "a", "turns": [{"text": "x", "role": "PM"}, {"text": "y"}]}, "turn 2 has neither role nor speaker"),
    ("text", {"id": "a", "turns": ["x"]}, "each item of turns: expected a JSON object, found 'x'"),
]


def test_bad_records_are_refused_with_their_place(tmp_path: Path) -> None:
    for kind, record, message in BAD_RECORDS:
        path = write_lines(tmp_path / "train.jsonl", [record])
        with pytest.raises(ValueError) as error:
            list(read_records(path, kind))
        assert str(error.value).startswith(f"{path}:1: ") and message in str(error.value)


def test_json_there_and_back(meetings: list[Record]) -> None:
    others = [Document("a", text="One. Two.", target=("x",)), Document("b", sentences=("One.", "Two."))]
    others += [Document("c", text="One.", target=("x",), other_references=(("y",), ("z", "w")))]
    for document in meetings + others:
        assert record_from_json(json.loads(json.dumps(record_to_json(document))), "here") == document


def test_question_and_meta_there_and_back() -> None:
    record = {"id": "a", "text": "x", "question": "Who?", "meta": {"source": ["b", 3]}}
    document = record_from_json(record, "f:1")
    assert document.parts == ("Who?", "x") and document.meta == {"source": ["b", 3]}
    assert record_to_json(document) == record and len({document}) == 1
    for wrong, message in (({"question": 3}, "question must be a string"), ({"meta": [1]}, "meta must be an object")):
        with pytest.raises(ValueError, match=f"f:1: .*{message}"):
            record_from_json({"id": "a", "text": "x", **wrong}, "f:1")


def test_a_target_string_has_one_sentence_on_each_line() -> None:
    assert record_from_json({"id": "a", "text": "x", "summary": "One .\nTwo ."}, "here").target == ("One .", "Two .")


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


def test_bad_lines_are_refused(tmp_path: Path) -> None:
    line = b'{"id": "a", "text": "x"}\n'
    for name, content, message in [
        ("d.jsonl", line + b"\n{\n", r"d\.jsonl:3: not a JSON object"),
        ("d.jsonl", line[:-2] + b"\n", r"d\.jsonl:1: not a JSON object"),
        ("d.jsonl", line * 2, r"d\.jsonl:2: document id 'a' was used before, in record 1"),
        ("d.jsonl", line + b'{"id": "b", "text": "caf\xe9"}\n', r"d\.jsonl:2: invalid UTF-8, byte 0xe9 at byte 49 "),
        ("d.jsonl.gz", gzip.compress(b"".join(line.replace(b"a", b"%d" % n) for n in range(50)))[:-12], "damaged gzip"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            list(read_records(tmp_path / name))
