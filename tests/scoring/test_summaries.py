from __future__ import annotations

import gzip
import json

import pytest

from hat_fairseq.scoring.files import HYPOTHESIS_KEYS, REFERENCE_KEYS, read_hypotheses, read_texts, write_summaries


def jsonl(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_json_lines_are_joined_by_id(tmp_path):
    hypotheses = jsonl(tmp_path / "h.jsonl", {"id": "b", "text": "B"}, {"id": "a", "text": "A"})
    references = jsonl(
        tmp_path / "r.jsonl",
        {"id": "a", "text": "source", "target": ["x", "y"]},
        {"id": "b", "text": "s", "summary": "z"},
    )
    read = read_texts(references, REFERENCE_KEYS)
    assert read.texts == [[["x", "y"]], ["z"]]
    assert read_hypotheses(hypotheses, read) == ["A", "B"]


def test_plain_text_breaks_only_at_line_feeds(tmp_path):
    path = tmp_path / "h.txt"
    path.write_bytes("one\u2028still one\x85 and\rone\n\nthree".encode())
    assert read_texts(path, HYPOTHESIS_KEYS).texts == [["one\u2028still one\x85 and\rone"], [""], ["three"]]


def test_what_is_written_is_read(tmp_path):
    rows = [{"id": "ä", "text": "line\nbreak, \u2028 and 漢字"}, {"id": "b", "text": ["a", "b"]}]
    write_summaries(tmp_path / "new" / "h.jsonl", rows)
    read = read_texts(tmp_path / "new" / "h.jsonl", HYPOTHESIS_KEYS)
    assert (read.ids, read.texts) == (["ä", "b"], [[rows[0]["text"]], [["a", "b"]]])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["h.jsonl"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "h.jsonl"
    write_summaries(path, [{"id": "a"}])

    def rows():
        yield {"id": "b"}
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        write_summaries(path, rows())
    assert path.read_text() == '{"id": "a"}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_gzip(tmp_path):
    path = tmp_path / "h.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a", "text": "A"}\n'))
    assert read_texts(path, HYPOTHESIS_KEYS).texts == [["A"]]


def test_differing_counts(tmp_path):
    (tmp_path / "h.txt").write_text("one\ntwo\n")
    references = jsonl(tmp_path / "r.jsonl", {"id": "a", "target": "x"})
    with pytest.raises(ValueError, match=r"h\.txt has 2 documents, but .*r\.jsonl has 1"):
        read_hypotheses(tmp_path / "h.txt", read_texts(references, REFERENCE_KEYS))


def test_missing_ids_on_either_side(tmp_path):
    two = jsonl(
        tmp_path / "two.jsonl", {"id": "a", "text": "A", "target": "A"}, {"id": "b", "text": "B", "target": "B"}
    )
    one = jsonl(tmp_path / "one.jsonl", {"id": "a", "text": "A", "target": "A"})
    with pytest.raises(ValueError, match=r"one\.jsonl lacks 1 of 2 ids, the first is 'b'"):
        read_hypotheses(one, read_texts(two, REFERENCE_KEYS))
    with pytest.raises(ValueError, match=r"one\.jsonl lacks 1 of 2 ids, the first is 'b'"):
        read_hypotheses(two, read_texts(one, REFERENCE_KEYS))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', r":2: the id 'a' for the second time"),
        (b'{"id": "a", "text": "x"}\n{"text": "y"}\n', "1 of 2 lines have an id"),
        (b'{"id": "a", "target": "x"}\n', r":1: no 'text' among its keys \['id', 'target'\]"),
        (b'{"id": "a", "text": [1]}\n', r":1: 'text' must be a string or a list of strings"),
        (b'{"id": "a"\n', ":1: not a JSON object"),
        (b'["a"]\n', ":1: expected a JSON object"),
        (b'{"id": "a", "text": "x"}\n{"id": "b", "text": "\xff"}\n', ":2: .*UTF-8"),
    ],
)
def test_errors_name_file_and_line(tmp_path, content, message):
    path = tmp_path / "h.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"h\.jsonl.*{message}"):
        read_texts(path, HYPOTHESIS_KEYS)
