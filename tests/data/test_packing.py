"""Packing of units into segments: nothing lost, nothing longer, nothing split that fits."""

from __future__ import annotations

import json

import pytest
from commands import REPOSITORY

from hat_fairseq.data.packing import pack_segments


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


def test_examples() -> None:
    assert pack_segments([[1, 2], [], [3], [4, 5, 6], [7]], 3) == [[1, 2, 3], [4, 5, 6], [7]]
    assert pack_segments([[1], [2, 3, 4, 5, 6], [7], [8]], 3) == [[1], [2, 3, 4], [5, 6, 7], [8]]
    assert pack_segments([], 3) == pack_segments([[]], 3) == []
    with pytest.raises(ValueError, match="segments of 0 tokens"):
        pack_segments([[1]], 0)
