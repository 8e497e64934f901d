"""Overlapping windows of whole segments that together cover a long text (for questions about it).

A window takes as many segments as fit. The next one begins with segments of the one before, as many as have at most
``overlap`` tokens. A segment longer than a window is covered by windows of its own, each beginning ``overlap`` tokens
before the end of the one before; so with a single segment these are the windows of Devlin et al. 2019 (BERT on SQuAD).
"""

from collections.abc import Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """Tokens ``begin`` to ``end`` (exclusive) of a segment."""

    segment: int
    begin: int
    end: int


def cut_windows(lengths: Sequence[int], size: int, overlap: int) -> list[list[Piece]]:
    """Windows of at most ``size`` tokens, in order, none inside another, each token in at least one.

    Args:
        lengths: tokens of each segment, at least 1, without its marker, which takes one more in the window.
        size: longest window, markers included; at least 2.
        overlap: most tokens that two consecutive windows share, markers included; below ``size - 1``.

    Raises:
        ValueError: ``size`` or ``overlap`` out of range.
    """
    if size < 2 or not 0 <= overlap < size - 1:
        raise ValueError(f"windows of {size} tokens cannot overlap by {overlap}")
    windows: list[list[Piece]] = []
    begin = 0
    while begin < len(lengths):
        end, used = begin, 0
        while end < len(lengths) and used + 1 + lengths[end] <= size:
            used += 1 + lengths[end]
            end += 1
        if end == begin:  # too long by itself
            windows += ([Piece(begin, *part)] for part in _parts(lengths[begin], size - 1, overlap))
            begin += 1
            continue
        windows.append([Piece(index, 0, lengths[index]) for index in range(begin, end)])
        if end < len(lengths) and 1 + lengths[end] <= size:
            begin = _first_shared(lengths, end, min(overlap, size - 1 - lengths[end]))
        else:  # the next segment has windows of its own
            begin = end
    return windows


def _first_shared(lengths: Sequence[int], end: int, room: int) -> int:
    """The first segment before ``end`` that the next window repeats, which then goes on with segment ``end``.

    Never the first one of the window before: with all its segments there was no room for segment ``end``.
    """
    first = end
    while 1 + lengths[first - 1] <= room:
        first -= 1
        room -= 1 + lengths[first]
    return first


def _parts(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    parts = [(0, min(room, length))]
    while parts[-1][1] < length:
        start = parts[-1][1] - overlap
        parts.append((start, min(start + room, length)))
    return parts
