"""Rows that are longer than the model: an error, or truncated, with the loss counted.

`hat preprocess --max-source-tokens` has more policies. This one serves a model that takes fewer tokens than its data
has. A row is `<s> ... [</s> </s> <s> ...] </s>`; the end of one of its parts is truncated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from ..data.long_source import LongSourceError

POLICIES = ("error", "truncate")
PARTS = ("longest", "first", "last")  # which part is truncated


def fit_rows(
    rows: Any, safe_length: float, fits: Callable[[Tensor], bool], policy: str, part: str, eos: int, what: str
) -> dict[int, slice]:
    """For each over-long row, the slice of tokens to remove.

    Args:
        rows: indexed (T,) token ids with `sizes`, each ending in `eos`.
        safe_length: rows of up to this many tokens fit; they are not checked.
        fits: whether the model takes a row.
        policy, part: of `POLICIES` and `PARTS`.
        what: name of the split, for messages.
    Raises:
        LongSourceError: a row is too long under the policy `error`, or could not be shortened enough.
        ValueError: an empty row.
    """
    sizes = np.asarray(rows.sizes)
    if (sizes < 2).any():
        raise ValueError(f"row {int(np.flatnonzero(sizes < 2)[0]) + 1} of {what} is empty; preprocess the data again")
    removed = {}
    for index in np.flatnonzero(sizes > safe_length).tolist():
        tokens = rows[index]
        if fits(tokens):
            continue
        where = f"row {index + 1} of {what}: {len(tokens)} tokens are more than the model takes"
        if policy == "error":
            raise LongSourceError(
                f"{where}; build a larger one (--max-positions or --max-segments), preprocess with "
                "--max-source-tokens, or give --long-source truncate"
            )
        removed[index] = _shortest_cut(tokens, fits, truncated_part(tokens, part, eos), where)
    return removed


def truncated_part(tokens: Tensor, part: str, eos: int) -> slice:
    """The position of the part to truncate, without separators."""
    ends = tokens.eq(eos).nonzero().flatten().tolist()
    parts = [slice(0, ends[0])]
    if len(ends) > 1:
        parts.append(slice(ends[1] + 1, len(tokens) - 1))
    if part == "longest":
        return max(parts, key=lambda piece: piece.stop - piece.start)
    return parts[0] if part == "first" else parts[-1]


def _shortest_cut(tokens: Tensor, fits: Callable[[Tensor], bool], piece: slice, where: str) -> slice:
    """The shortest end of `piece` without which the row fits; its first token stays."""
    enough, too_little = piece.stop - piece.start - 1, 0
    if not fits(without(tokens, slice(piece.stop - enough, piece.stop))):
        raise LongSourceError(f"{where}, even without the part that may be truncated; build a larger model")
    while enough - too_little > 1:
        middle = (enough + too_little) // 2
        if fits(without(tokens, slice(piece.stop - middle, piece.stop))):
            enough = middle
        else:
            too_little = middle
    return slice(piece.stop - enough, piece.stop)


def without(tokens: Tensor, removed: slice) -> Tensor:
    return tokens[kept(len(tokens), removed)]


def kept(length: int, removed: slice) -> np.ndarray:
    """(length,) bool, False in `removed`."""
    keep = np.ones(length, dtype=bool)
    keep[removed] = False
    return keep


def cost(rows: Any, removed: dict[int, slice], bos: int) -> Counter[str]:
    """Counts of what is removed; empty if nothing is."""
    counts: Counter[str] = Counter()
    for index, piece in removed.items():
        counts["rows_over_limit"] += 1
        counts["tokens_truncated"] += piece.stop - piece.start
        counts["sentences_truncated"] += int(rows[index][piece].eq(bos).sum())
    return counts


def describe(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
