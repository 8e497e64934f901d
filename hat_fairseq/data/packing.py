"""Packing of consecutive sentences, words or segments into chunks, segments, rows and windows of limited length."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from .dictionary import SPECIAL

BOS, _, EOS, _ = SPECIAL
Item = TypeVar("Item")
Token = TypeVar("Token")


def fill(
    items: Iterable[Item], cost: Callable[[Item, bool], tuple[int, ...]], limits: tuple[int | None, ...]
) -> Iterator[list[Item]]:
    """Groups of consecutive items, one after the other, each as large as all `limits` allow (None: no limit).

    `cost`: of an item for each of the limits; True for the first of its group. An item above a limit is a group.
    """
    group: list[Item] = []
    totals: tuple[int, ...] = ()
    for item in items:
        with_it = tuple(map(sum, zip(totals, cost(item, False), strict=True))) if group else cost(item, True)
        if group and any(limit is not None and total > limit for total, limit in zip(with_it, limits, strict=True)):
            yield group
            group, with_it = [], cost(item, True)
        group.append(item)
        totals = with_it
    if group:
        yield group


def cut(unit: Sequence[Token], size: int) -> list[Sequence[Token]]:
    """Pieces of at most `size` tokens."""
    return [unit[start : start + size] for start in range(0, len(unit), size)]


def pack_segments(units: Iterable[Sequence[Token]], size: int) -> list[list[Token]]:
    """Merge consecutive units into segments of at most `size` tokens, without their markers (Chalkidis et al. 2022).

    A unit that is longer than a segment is cut and continues in the next one; what follows fills up its last piece.
    Empty units add nothing. ValueError for a `size` below 1.
    """
    if size < 1:
        raise ValueError(f"segments of {size} tokens: at least 1")
    pieces = (piece for unit in units for piece in cut(unit, size))
    return [[token for piece in group for token in piece] for group in fill(pieces, lambda p, _: (len(p),), (size,))]


class _Piece(NamedTuple):
    tokens: Sequence[str]
    opens: bool  # whether a document begins with it


def pack_rows(
    documents: Iterable[Sequence[Sequence[str]]],
    size: int | None,
    markers: bool,
    counts: Counter[str],
    max_segments: int | None = None,
) -> Iterator[list[str]]:
    """Fill rows of at most `size` tokens with whole units of consecutive documents.

    `</s>` stands between two documents in a row (fairseq-preprocess puts one at its end), `<s>` before the first unit
    of each row and each document, and with `markers` before every unit. A unit that is longer than a row is cut, goes
    on in further rows, and is counted as `segments_longer_than_row`.

    Args:
        documents: the units of each, none of them empty.
        size: longest row, without the final `</s>`; at least 2, or None for one row.
        max_segments: most markers of a row; None for any number.
    """

    def pieces() -> Iterator[_Piece]:
        for units in documents:
            for number, unit in enumerate(units):
                room = len(unit) if size is None else size - 1
                counts["segments_longer_than_row"] += len(unit) > room
                for start, piece in enumerate(cut(unit, room)):
                    yield _Piece(piece, number == start == 0)

    def before(piece: _Piece, first: bool) -> list[str]:
        end = [EOS] if piece.opens and not first else []
        return end + ([BOS] if markers or piece.opens or first else [])

    def cost(piece: _Piece, first: bool) -> tuple[int, int]:
        extra = before(piece, first)
        return len(extra) + len(piece.tokens), extra.count(BOS)

    for group in fill(pieces(), cost, (size, max_segments)):
        yield [token for i, piece in enumerate(group) for token in (*before(piece, i == 0), *piece.tokens)]


class Piece(NamedTuple):
    """Tokens `begin` to `end` (exclusive) of a segment."""

    segment: int
    begin: int
    end: int


def cut_windows(lengths: Sequence[int], size: int, overlap: int) -> list[list[Piece]]:
    """Overlapping windows of whole segments that together cover a text; none is inside another.

    A window takes as many segments as fit. The next one begins with segments of the one before, as many as have at most
    `overlap` tokens. A segment longer than a window is covered by windows of its own, each beginning `overlap` tokens
    before the end of the one before: with a single segment these are the windows of Devlin et al. 2019 (BERT on SQuAD).

    Args:
        lengths: tokens of each segment, at least 1, without its marker, which takes one more in the window.
        size: longest window, markers included; at least 2.
        overlap: most tokens that two consecutive windows share, markers included; below `size - 1`, else a ValueError.
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
    """The first segment before `end` that the next window repeats, which then goes on with segment `end`.

    Never the first one of the window before: with all its segments there was no room for segment `end`.
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
