"""Fill segments and rows of limited length with consecutive units (words, sentences) without loss."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from hat_fairseq.data.encoded import BOS, EOS

Token = TypeVar("Token")


def pack_segments(units: Iterable[Sequence[Token]], size: int) -> list[list[Token]]:
    """Merge consecutive units into segments of at most ``size`` tokens.

    Chalkidis et al. 2022 merge sentences greedily into segments. A unit that is longer than a segment is cut and
    continues in the next one, and what follows it fills up its last piece.

    Args:
        units: tokens of each unit, in order; empty ones add nothing.
        size: longest segment, without the marker that the caller puts in front of it.

    Returns:
        Segments, none of them empty; joined they are the joined units.

    Raises:
        ValueError: ``size`` is below 1.
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


def pack_rows(
    documents: Iterable[Sequence[Sequence[str]]],
    size: int | None,
    markers: bool,
    counts: Counter[str],
    max_segments: int | None = None,
) -> Iterator[list[str]]:
    """Fill rows of at most ``size`` tokens with whole units of consecutive documents.

    ``</s>`` stands between two documents in a row (fairseq-preprocess puts one at its end), ``<s>`` before the first
    unit of each row and each document, and with ``markers`` before every unit. A unit that is longer than a row is cut,
    goes on in further rows, and is counted as ``segments_longer_than_row``.

    Args:
        documents: the units of each, none of them empty.
        size: longest row, without the final ``</s>``; at least 2, or None for one row.
        max_segments: most markers of a row; None for any number.
    """
    row: list[str] = []
    segments = 0  # markers in the row
    for units in documents:
        new_document = True
        for unit in units:
            between = [EOS] if new_document and row else []
            piece = [BOS, *unit] if markers or new_document else list(unit)
            new_document = False
            full_up = segments == max_segments and piece[0] == BOS
            if not full_up and (size is None or len(row) + len(between) + len(piece) <= size):
                row += between + piece
                segments += piece[0] == BOS
                continue
            if row:
                yield row
            room = len(unit) if size is None else size - 1
            counts["segments_longer_than_row"] += len(unit) > room
            *full, row = [[BOS, *unit[start : start + room]] for start in range(0, len(unit), room)]
            yield from full
            segments = 1
    if row:
        yield row
