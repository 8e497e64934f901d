"""Packing a document's own units (sentences, paragraphs, turns) into segments of a limited length, without any loss.

Chalkidis et al. 2022 merge sentences greedily into segments. A unit that is longer than a segment is cut and continues
in the next one, and what follows it fills up its last piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

Token = TypeVar("Token")


def pack_segments(units: Iterable[Sequence[Token]], size: int) -> list[list[Token]]:
    """Merges consecutive units into segments of at most `size` tokens.

    Args:
        units: tokens of each unit, in order; empty ones add nothing.
        size: longest segment, without the marker that the caller puts in front of it.
    Returns:
        Segments, none of them empty; joined they are the joined units.
    Raises:
        ValueError: `size` is below 1.
    """
    if size < 1:
        raise ValueError(f"segments of {size} tokens: at least 1")
    segments: list[list[Token]] = []
    for unit in units:
        if segments and len(segments[-1]) + len(unit) <= size:
            segments[-1].extend(unit)
        else:
            segments += [list(unit[start : start + size]) for start in range(0, len(unit), size)]
    return segments
