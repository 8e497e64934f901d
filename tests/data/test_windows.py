"""Windows: everything covered, nothing too long, no more shared than allowed, nothing repeated needlessly."""

from __future__ import annotations

from itertools import pairwise

import pytest
from drawn import draws
from hypothesis import given
from hypothesis import strategies as st

from hat_fairseq.data.packing import Piece, cut_windows


def tokens_of(window: list[Piece]) -> list[tuple[int, int]]:
    return [(piece.segment, index) for piece in window for index in range(piece.begin, piece.end)]


@draws
@given(st.lists(st.sampled_from((1, 2, 5, 13, 40)), min_size=1, max_size=30), st.integers(2, 50), st.integers(0))
def test_drawn_lengths(lengths: list[int], size: int, overlap: int) -> None:
    overlap %= size - 1
    windows = cut_windows(lengths, size, overlap)
    covered = [tokens_of(window) for window in windows]
    everything = [(segment, index) for segment, length in enumerate(lengths) for index in range(length)]
    assert sorted(set(sum(covered, []))) == everything
    for window, tokens in zip(windows, covered, strict=True):
        assert 0 < len(tokens) + len(window) <= size
        begin = everything.index(tokens[0])
        assert tokens == everything[begin : begin + len(tokens)]  # nothing is left out in the middle
        if len(window) > 1:
            assert all(piece.begin == 0 and piece.end == lengths[piece.segment] for piece in window)
    for (before, after), pieces in zip(pairwise(covered), windows, strict=False):
        whole = all(piece.end - piece.begin == lengths[piece.segment] for piece in pieces)
        assert before[0] < after[0] and before[-1] < after[-1]  # each goes on
        shared = [token for token in after if token in before]
        markers = len({segment for segment, _ in shared}) if whole else 0
        assert len(shared) + markers <= overlap
        if whole:  # the next segment would not have fitted: a window is not cut short
            following = after[len(shared)][0]
            assert len(before) + len(pieces) + 1 + lengths[following] > size


def test_examples() -> None:
    # [a b] [c d d d]: the window with segment 2 begins with segment 1, which has 2 tokens with its marker.
    windows = cut_windows([1, 1, 3], size=6, overlap=2)
    assert windows == [[Piece(0, 0, 1), Piece(1, 0, 1)], [Piece(1, 0, 1), Piece(2, 0, 3)]]
    assert cut_windows([1, 1, 3], size=6, overlap=1)[1] == [Piece(2, 0, 3)]
    assert cut_windows([7], size=4, overlap=1) == [[Piece(0, 0, 3)], [Piece(0, 2, 5)], [Piece(0, 4, 7)]]
    assert cut_windows([], size=4, overlap=1) == []


@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (3, 2), (4, -1)])
def test_windows_that_cannot_be(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match=f"windows of {size} tokens cannot overlap by {overlap}"):
        cut_windows([3], size, overlap)
