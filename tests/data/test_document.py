from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records, record_from_json, record_to_json


def test_the_embedded_meetings(meetings: list[Record]) -> None:
    first = meetings[0]
    assert first.id == "ES2005b"
    assert first.sentences is not None and first.roles is not None
    assert len(first.sentences) == len(first.roles)
    assert set(first.roles) == {"PM", "ME", "UI", "ID"}


def test_a_document_knows_where_it_comes_from(meetings: list[Record]) -> None:
    assert (meetings[1].origin or "").endswith("ami.train.jsonl.gz:2")
    assert meetings[0].name.startswith("document 'ES2005b' (") and Document("a", text="x").name == "document 'a'"
    assert "origin" not in record_to_json(meetings[0])
    assert Document("a", text="x", origin="here") == Document("a", text="x", origin="there")


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


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "expected a JSON object"),
        ({"text": "x"}, "there is no id"),
        ({"id": "", "text": "x"}, "'': its id is empty"),
        ({"id": "a\tb", "text": "x"}, "contains a tab"),
        ({"id": 7, "text": "x"}, "id must be a string, not 7"),
        ({"id": "a"}, "exactly one of text, turns, sentences, not none"),
        ({"id": "a", "text": "x", "sentences": []}, "not text and sentences"),
        ({"id": "a", "text": "x", "lang": "en"}, "unknown key 'lang'"),
        ({"id": "a", "text": "x", "target": "y", "summary": "y"}, "two names for the same thing"),
        ({"id": "a", "sentences": ["x", None]}, "sentences must be a string, not None"),
        ({"id": "a", "turns": [{"text": "x", "mood": "good"}]}, "turns: unknown key 'mood'"),
        ({"id": "a", "turns": [{"text": "x", "role": "PM"}, {"text": "y"}]}, "turn 2 has neither role nor speaker"),
        ({"id": "a", "turns": ["x"]}, "each item of turns: expected a JSON object, found 'x'"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(record: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^file:3: .*{message}"):
        record_from_json(record, "file:3")


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes("\ufeffa\rb\u2028c\x0bd\ne\r\nf".encode())
    assert list(read_lines(path)) == [(1, "a\rb\u2028c\x0bd"), (2, "e\r"), (3, "f")]


def test_lone_carriage_returns_do_not_shift_documents(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"id": "a", "text": "x\\ry"}\r\n{"id": "b", "text":\r "z"}\n')
    assert [(document.id, document.text) for document in read_records(path)] == [("a", "x\ry"), ("b", "z")]


def test_invalid_utf8_is_refused_with_file_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"id": "a", "text": "x"}\n{"id": "b", "text": "caf\xe9"}\n')
    with pytest.raises(ValueError, match=r"d\.jsonl:2: invalid UTF-8, byte 0xe9 at byte 49 "):
        list(read_records(path))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": "a", "text": "x"}\n\n', r"d\.jsonl:2: not a JSON object"),
        ('{"id": "a", "text": "x"\n', r"d\.jsonl:1: not a JSON object"),
        ('{"id": "a", "text": "x"}\n' * 2, r"d\.jsonl:2: document id 'a' was used before, in line 1"),
    ],
)
def test_bad_lines_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(lines)
    with pytest.raises(ValueError, match=message):
        list(read_records(path))


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a", "text": "x"}\n' * 50)[:-12])
    with pytest.raises(ValueError, match="damaged gzip file"):
        list(read_lines(path))
