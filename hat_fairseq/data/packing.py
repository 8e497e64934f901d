"""Packing of consecutive sentences, words or segments into chunks, segments, rows and windows of limited length."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple, TypeVar

from hat_fairseq.data.rows import BOS, EOS

Item = TypeVar("Item")
Token = TypeVar("Token")


def group_within(
    items: Iterable[Item], cost: Callable[[Item, bool], tuple[int, ...]], limits: tuple[int | None, ...]
) -> Iterator[list[Item]]:
    """Yields groups of consecutive items, one after the other, each as large as all `limits` allow (None: no limit).

    `cost`: of an item for each of the limits; True for the first of its group. An item above a limit is a group.
    """
    group: list[Item] = []
    totals: tuple[int, ...] = ()
    for item in items:
        with_it = tuple(map(sum, zip(totals, cost(item, False), strict=True))) if group else cost(item, True)
        if group and exceeds(with_it, limits):
            yield group
            group, with_it = [], cost(item, True)
        group.append(item)
        totals = with_it
    if group:
        yield group


def exceeds(sizes: Iterable[int], limits: Iterable[int | None]) -> bool:
    """Tells whether one of the sizes is above its limit; None: no limit."""
    return any(limit is not None and size > limit for size, limit in zip(sizes, limits, strict=True))


def cut(unit: Sequence[Token], size: int) -> list[Sequence[Token]]:
    """Returns pieces of at most `size` tokens."""
    return [unit[start : start + size] for start in range(0, len(unit), size)]


def pack_segments(units: Iterable[Sequence[Token]], size: int) -> list[list[Token]]:
    """Merge consecutive units into segments of at most `size` tokens, without their markers (Chalkidis et al. 2022).

    A unit that is longer than a segment is cut and continues in the next one; what follows fills up its last piece.
    Empty units add nothing.
    """
    pieces = (piece for unit in units for piece in cut(unit, size))
    return [list(chain.from_iterable(group)) for group in group_within(pieces, lambda p, _: (len(p),), (size,))]


def pack_rows(
    documents: Iterable[Sequence[Sequence[str]]],
    size: int | None,
    markers: bool,
    counts: Counter[str],
    max_segments: int | None = None,
    segment_length: int = 128,
) -> Iterator[list[str]]:
    """Fill rows of at most `size` tokens with whole units of consecutive documents.

    `</s>` stands between two documents in a row (fairseq-preprocess puts one at its end), `<s>` before the first unit
    of each row and each document, and with `markers` before every unit. A unit that is longer than a row is cut, goes
    on in further rows, and is counted as `segments_longer_than_row`.

    Args:
        documents: the units of each, none of them empty.
        size: longest row, without the final `</s>`; at least 2, or None for one row.
        max_segments: most segments of a row; one above `segment_length` counts several times.
    """
    limits = [each for each in (size, max_segments and max_segments * segment_length - 1) if each is not None]

    def pieces() -> Iterator[tuple[tuple[str, ...], Sequence[str]]]:
        """Yields what stands before each piece inside a row, and its tokens."""
        for units in documents:
            before: tuple[str, ...] = (EOS, BOS)
            for unit in units:
                room = min(limits, default=1 + len(unit)) - 1
                counts["segments_longer_than_row"] += len(unit) > room
                for piece in cut(unit, room):
                    yield before, piece
                    before = (BOS,) if markers else ()

    def cost(piece: tuple[tuple[str, ...], Sequence[str]], first: bool) -> tuple[int, int]:
        before, tokens = piece
        return (1 if first else len(before)) + len(tokens), segments_of(len(tokens), segment_length)

    for (_, first), *others in group_within(pieces(), cost, (size, max_segments)):
        yield [BOS, *first, *(token for before, tokens in others for token in (*before, *tokens))]


class Piece(NamedTuple):
    """Tokens `begin` to `end` (exclusive) of a segment."""

    segment: int
    begin: int
    end: int


def cut_windows(
    lengths: Sequence[int], size: int, overlap: int, max_segments: int | None = None, segment_length: int = 128
) -> list[list[Piece]]:
    """Returns overlapping windows of whole segments that together cover a text; none is inside another.

    A window takes as many segments as fit. The next one begins with segments of the one before, as many as have at most
    `overlap` tokens. A segment longer than a window is split into windows with stride `size - 1 - overlap`: with a
    single segment these are the windows of Devlin et al. 2019 (BERT on SQuAD).

    Args:
        lengths: tokens of each segment, at least 1, without its marker, which takes one more in the window.
        size: longest window, markers included; at least 2.
        overlap: most tokens that two consecutive windows share, markers included; below `size - 1`.
        max_segments: most segments of a window; one above `segment_length` counts several times.
    """
    assert 0 <= overlap < size - 1, (size, overlap)
    tokens = [0, *accumulate(1 + length for length in lengths)]
    numbers = [0, *accumulate(segments_of(length, segment_length) for length in lengths)]

    def fit(begin: int, end: int) -> bool:
        return not exceeds((tokens[end] - tokens[begin], numbers[end] - numbers[begin]), (size, max_segments))

    windows: list[list[Piece]] = []
    begin = end = 0
    while end < len(lengths):
        while end < len(lengths) and fit(begin, end + 1):
            end += 1
        if end == begin:  # too long by itself
            for start in range(0, lengths[begin] - overlap, size - 1 - overlap):
                windows.append([Piece(begin, start, min(start + size - 1, lengths[begin]))])
            begin = end = begin + 1
            continue
        windows.append([Piece(index, 0, lengths[index]) for index in range(begin, end)])
        begin = end
        while end < len(lengths) and tokens[end] - tokens[begin - 1] <= overlap and fit(begin - 1, end + 1):
            begin -= 1
    return windows


def segments_of(length: int, segment_length: int) -> int:
    """Tells how many segments an encoder makes of one of this many tokens, its marker, and a `</s>` that may follow."""
    return -(-(length + 2) // segment_length)
