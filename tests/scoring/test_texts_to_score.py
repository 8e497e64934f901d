"""Texts of hypotheses and references: JSON lines or plain text, joined by id or by line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, REFERENCE_KEYS, read_hypotheses, read_texts, write_summaries


def jsonl(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_json_lines_are_joined_by_id(tmp_path: Path) -> None:
    hypotheses = jsonl(tmp_path / "h.jsonl", {"id": "b", "text": "B"}, {"id": 1, "text": "A"})
    references = jsonl(
        tmp_path / "r.jsonl",
        {"id": "1", "text": "source", "target": ["x", "y"]},
        {"id": "b", "text": "s", "summary": "z"},
    )
    read = read_texts(references, REFERENCE_KEYS)
    assert read.texts == [[["x", "y"]], ["z"]] and read_hypotheses(str(hypotheses), read) == ["A", "B"]


def test_plain_text_breaks_only_at_line_feeds(tmp_path: Path) -> None:
    path = tmp_path / "h.txt"
    path.write_bytes("one\u2028still one\x85 and\rone\n\nthree".encode())
    assert read_texts(path, HYPOTHESIS_KEYS).texts == [["one\u2028still one\x85 and\rone"], [""], ["three"]]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    rows = [{"id": "ä", "text": "line\nbreak, \u2028 and 漢字"}, {"id": "b", "text": ["a", "b"]}]
    write_summaries(tmp_path / "new" / "h.jsonl", rows)
    (tmp_path / "h.jsonl.gz").write_bytes(gzip.compress((tmp_path / "new/h.jsonl").read_bytes()))
    for path in (tmp_path / "new/h.jsonl", tmp_path / "h.jsonl.gz"):
        read = read_texts(path, HYPOTHESIS_KEYS)
        assert (read.ids, read.texts) == (["ä", "b"], [[rows[0]["text"]], [["a", "b"]]])


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    write_summaries(path, [{"id": "a"}])
    with pytest.raises(ZeroDivisionError):
        write_summaries(path, ({"id": 1 // n} for n in (1, 0)))
    assert path.read_text() == '{"id": "a"}\n' and list(tmp_path.iterdir()) == [path]


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    two = jsonl(tmp_path / "two.jsonl", *({"id": i, "text": i, "target": i} for i in "ab"))
    one = jsonl(tmp_path / "one.jsonl", {"id": "a", "text": "A", "target": "A"})
    without = jsonl(tmp_path / "without.jsonl", {"text": "A"}, {"text": "B"})
    (tmp_path / "h.txt").write_text("one\ntwo\n")
    for hypotheses, references, message in (
        (tmp_path / "h.txt", one, r"h\.txt has 2 documents, but .*one\.jsonl has 1"),
        (one, two, r"one\.jsonl lacks 1 of 2 ids, the first is 'b'"),
        (two, one, r"one\.jsonl lacks 1 of 2 ids, the first is 'b'"),
        (without, two, "without.jsonl has no ids, and .*two.jsonl has"),
    ):
        with pytest.raises(ValueError, match=message):
            read_hypotheses(str(hypotheses), read_texts(references, REFERENCE_KEYS))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', r":2: the id 'a' for the second time"),
        (b'{"id": "a", "text": "x"}\n{"text": "y"}\n', r":2: no 'id' among its keys \['text'\]"),
        (b'{"text": "y"}\n{"id": "a", "text": "x"}\n', ":2: it has an id, and the lines above have none"),
        (b'{"id": "a", "target": "x"}\n', r":1: no 'text' among its keys \['id', 'target'\]"),
        (b'{"id": "a", "text": [1]}\n', r":1: 'text' must be a string or a list of strings"),
        (b'{"id": "a"\n', ":1: not a JSON object"),
        (b'{"id": "a", "text": "x"}\n{"id": "b", "text": "\xff"}\n', ":2: .*UTF-8"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"h\.jsonl.*{message}"):
        read_texts(path, HYPOTHESIS_KEYS)
