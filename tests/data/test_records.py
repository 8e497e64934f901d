"""Records as JSON: what is read, and the same after there and back."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from golden_lines import cases, check

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records, record_from_json, record_to_json


@cases("records")
def test_what_is_read(case: dict[str, Any]) -> None:
    record = record_from_json(case["in"], "here", case["kind"])
    known = asdict(record).items()
    check("records", case, {name: value for name, value in known if value is not None and name not in ("id", "origin")})
    assert record_from_json(json.loads(json.dumps(record_to_json(record))), "here", case["kind"]) == record
    assert len({record}) == 1


def test_json_there_and_back(meetings: list[Record]) -> None:
    for document in meetings:
        assert record_from_json(json.loads(json.dumps(record_to_json(document))), "here") == document


def test_the_place_of_a_record_is_its_origin(tmp_path: Path) -> None:
    record = record_from_json({"id": "a", "text": "x"}, "b.jsonl:3")
    assert (record.origin, record.name) == ("b.jsonl:3", "document 'a' (b.jsonl:3)")
    with pytest.raises(ValueError, match="^b.jsonl:3: document 'a': give exactly one of text, turns, sentences"):
        record_from_json({"id": "a"}, "b.jsonl:3")
    (path := tmp_path / "train.jsonl").write_text('{"text": "a"}\n{"segments": ["b"]}\n')
    assert [each.id for each in read_records(path, "mlm")] == ["train.jsonl:1", "train.jsonl:2"]


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    (path := tmp_path / "lines").write_bytes("\ufeffa\rb\u2028c\x0bd\ne\r\nf".encode())
    assert list(read_lines(path)) == [(1, "a\rb\u2028c\x0bd"), (2, "e\r"), (3, "f")]
    path = tmp_path / "d.jsonl"
    path.write_bytes(b'{"id": "a", "text": "x\\ry"}\r\n{"id": "b", "text":\r "z"}\n')
    assert [(document.id, document.text) for document in read_records(path)] == [("a", "x\ry"), ("b", "z")]
