"""Packing of units into segments: nothing lost, nothing longer, nothing split that fits."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest
from commands import REPOSITORY
from drawn import draws
from hypothesis import given
from hypothesis import strategies as st

from hat_fairseq.data.packing import pack_rows, pack_segments


def paragraphs() -> list[list[str]]:
    """Words of the lines of a real page."""
    with open(REPOSITORY / "tests/samples/libreoffice_help.jsonl", encoding="utf-8") as lines:
        document = max((json.loads(line) for line in lines), key=lambda page: len(json.dumps(page)))
    return [str(value).split() for value in flatten(document)]


def flatten(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in flatten(inner)]
    return [leaf for inner in value for leaf in flatten(inner)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 127, 100_000])
def test_real_text_is_packed_whole_and_greedily(size: int) -> None:
    units = paragraphs()
    words = [word for unit in units for word in unit]
    assert len(words) > 300
    segments = pack_segments(units, size)
    assert [word for segment in segments for word in segment] == words
    assert all(1 <= len(segment) <= size for segment in segments)
    ends = set()  # numbers of words after which a segment ends
    for segment in segments:
        ends.add(len(segment) + max(ends, default=0))
    position = 0
    for unit in units:
        inside = [position + i for i in range(1, len(unit)) if position + i in ends]
        assert len(unit) > size or not inside  # what fits into a segment is not cut
        position += len(unit)


LENGTHS = st.lists(st.lists(st.sampled_from((1, 2, 3, 9, 30)), min_size=1, max_size=6), min_size=1, max_size=12)
DOCUMENTS = LENGTHS.map(
    lambda rows: [[[f"{d}.{u}.{t}" for t in range(n)] for u, n in enumerate(row)] for d, row in enumerate(rows)]
)


def test_examples() -> None:
    assert pack_segments([[1, 2], [], [3], [4, 5, 6], [7]], 3) == [[1, 2, 3], [4, 5, 6], [7]]
    assert pack_segments([[1], [2, 3, 4, 5, 6], [7], [8]], 3) == [[1], [2, 3, 4], [5, 6, 7], [8]]
    assert pack_segments([], 3) == pack_segments([[]], 3) == []
    with pytest.raises(ValueError, match="segments of 0 tokens"):
        pack_segments([[1]], 0)


def obvious_rows(documents: list[list[list[str]]], size: int, markers: bool) -> list[list[str]]:
    """The same in words: pieces one after the other, a new row where one does not fit."""
    rows: list[list[str]] = [[]]
    for document in documents:
        for number, unit in enumerate(document):
            pieces = [unit[i : i + size - 1] for i in range(0, len(unit), size - 1)] if len(unit) >= size else [unit]
            for piece in pieces:
                end = ["</s>"] if number == 0 and piece is pieces[0] else []
                if rows[-1]:
                    marked = end + ["<s>"] * (markers or bool(end)) + piece
                    if len(pieces) == 1 and len(rows[-1] + marked) <= size:
                        rows[-1] += marked
                        continue
                    rows.append([])
                rows[-1] += ["<s>", *piece]
    return [row for row in rows if row]


@draws
@given(DOCUMENTS, st.sampled_from((2, 3, 10, 31, 32, 1000)), st.booleans())
def test_rows_of_pre_training_lose_nothing_and_split_no_sentence(documents: list, size: int, markers: bool) -> None:
    counts: Counter[str] = Counter()
    rows = list(pack_rows(documents, size, markers, counts))
    assert rows == obvious_rows(documents, size, markers)
    assert [t for row in rows for t in row if t[0] != "<"] == [t for units in documents for unit in units for t in unit]
    assert all(len(row) <= size and row[0] == "<s>" and row[-1] not in ("<s>", "</s>") for row in rows)
    assert counts["segments_longer_than_row"] == sum(len(unit) >= size for units in documents for unit in units)
    for row in rows:
        for token in row[1:]:
            if token.endswith(".0.0"):  # a document begins
                assert row[row.index(token) - 2 : row.index(token)] == ["</s>", "<s>"] or row.index(token) == 1
    (one,) = pack_rows(documents, None, markers, counts)
    assert one.count("</s>") == len(documents) - 1


@draws
@given(DOCUMENTS, st.integers(1, 5))
def test_rows_have_at_most_so_many_segments(documents: list, most: int) -> None:
    rows = list(pack_rows(documents, 20, True, Counter(), most))
    assert [t for row in rows for t in row if t[0] != "<"] == [t for units in documents for unit in units for t in unit]
    for row, following in itertools.pairwise(rows):
        segments, first = row.count("<s>"), " ".join(following).split("<s>")[1].split()
        assert segments <= most
        # Nothing more would have fitted. (+ 2: a </s> where a document ends, and the marker.)
        assert segments == most or len(row) + len(first) + 2 > 20
