"""Rows of one or two parts that are longer than their limits: what stays of each part, and what is counted as lost.

`error`                refuse
`truncate`             keep the first tokens, the last sentence possibly cut (Rohde et al. 2021, section 4.1)
`truncate-sentences`   keep whole sentences only
`chunk`                several inputs that together cover everything, which `packing` makes: chunks or windows
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Flags = Sequence[bool] | NDArray[np.bool_]

POLICIES = ("error", "truncate", "truncate-sentences", "chunk")
SEPARATORS = 2  # tokens between two parts of a row
MIN_PART = 2  # tokens: a marker and a word


class LongInputError(ValueError):
    """The input is longer than a limit and the policy is `error`, or its parts cannot be truncated enough."""


class Limit(NamedTuple):
    """A limit, and what it counts in the parts of a row."""

    unit: str
    option: str
    most: int
    sizes: list[NDArray[np.int_]]  # of the first 1, 2 ... tokens of each part
    fixed: int = 0  # what counts beside the parts

    @property
    def totals(self) -> list[int]:
        """The sizes of the parts, which may be empty."""
        return [int(each.max(initial=0)) for each in self.sizes]

    @property
    def total(self) -> int:
        return self.fixed + sum(self.totals)

    def ends(self, truncated: int | None) -> list[int]:
        """Returns the number of tokens allowed for each part; `truncated` as of `fit_parts`."""
        shares = _shares(self.totals, self.most - self.fixed, truncated)
        return [int(np.searchsorted(each, share, "right")) for each, share in zip(self.sizes, shares, strict=True)]


def token_limit(parts: Sequence[Flags], most: int, option: str) -> Limit:
    """Returns a limit on tokens, with the separators of the parts and the final `</s>`."""
    fixed = SEPARATORS * (len(parts) - 1) + 1
    return Limit("tokens with </s>", option, most, [1 + np.arange(len(part)) for part in parts], fixed)


def segment_limit(parts: Sequence[Flags], most: int, segment_length: int) -> Limit:
    """Returns a limit on segments, as an encoder over segments counts them."""
    following = [*[SEPARATORS] * (len(parts) - 1), 1]
    sizes = [count_segments(part, segment_length, number) for part, number in zip(parts, following, strict=True)]
    return Limit("segments", "--max-segments", most, sizes)


def count_segments(is_bos: Flags, segment_length: int, following: int) -> NDArray[np.int_]:
    """Counts the segments that an encoder makes of the first 1, 2 ... tokens with `following` tokens behind them.

    One begins at each marker, and after each `segment_length` tokens; see `modules.segments.slots_at_markers`.
    """
    index = np.arange(len(is_bos))
    offset = index - np.maximum.accumulate(np.where(is_bos, index, 0))
    earlier = (offset % segment_length == 0).cumsum() - offset // segment_length
    return earlier + (offset + following) // segment_length


def fit_parts(
    parts: Sequence[Flags], limits: Iterable[Limit], policy: str, advice: str, truncated: int | None = None
) -> tuple[list[int], Counter[str]]:
    """Returns the number of tokens to keep of each of one or two parts of a row, and what that costs.

    Args:
        parts: of each token whether it is a sentence marker; text before the first marker is a sentence of its own.
        policy: one of `POLICIES` but `chunk`.
        advice: what the message of a refusal proposes beside a higher limit.
        truncated: number of the part to truncate; None for the longest one, until both have the same length.
    Returns:
        The ends of the parts, and the counts of what is lost: sentences are `truncated` whole or `cut`.
    Raises:
        LongInputError: too long and the policy is `error`, or too little would be left of a part.
    """
    exceeded = [limit for limit in limits if limit.total > limit.most]
    lengths, counts = list(map(len, parts)), Counter[str]()
    if not exceeded:
        return lengths, counts
    problem = " and ".join(f"{each.total} {each.unit} are more than the limit of {each.most}" for each in exceeded)
    if policy == "error":
        raise LongInputError(f"{problem}; raise {' and '.join(each.option for each in exceeded)}, or {advice}")
    ends = list(map(min, zip(*(each.ends(truncated) for each in exceeded), strict=True)))
    if len(parts) > 1 and min(ends) < MIN_PART:
        raise LongInputError(f"its parts have {lengths} tokens: {problem}, which leaves no room for both")
    for number, part in enumerate(parts):
        if ends[number] < lengths[number]:
            ends[number] = _truncate(part, ends[number], policy == "truncate-sentences", counts)
    return ends, +counts


def _shares(sizes: Sequence[int], room: int, truncated: int | None) -> list[int]:
    """The room for each of one or two parts that are together larger than all of it."""
    if len(sizes) == 1:
        return [room]
    cut_part = (0 if sizes[0] >= sizes[1] else 1) if truncated is None else truncated
    other = sizes[1 - cut_part] if truncated is not None else min(sizes[1 - cut_part], room // 2)
    return [room - other, other] if cut_part == 0 else [other, room - other]


def _truncate(is_bos: Flags, most: int, whole_sentences: bool, counts: Counter[str]) -> int:
    """The end of the tokens that stay, at most `most` and at least 1; adds to the counts."""
    starts = np.flatnonzero(np.asarray(is_bos, dtype=bool)).tolist()
    if not starts or starts[0] > 0:  # text before the first marker
        starts.insert(0, 0)
    within = [start for start in starts if 0 < start <= most]
    end, markers = most, set(within)
    if whole_sentences and within:
        end = within[-1]
    else:
        while end > 1 and end - 1 in markers:  # a marker with nothing after it marks no sentence
            end -= 1
    counts["tokens_truncated"] += len(is_bos) - end
    counts["sentences_truncated"] += sum(start >= end for start in starts)
    counts["sentences_cut"] += int(end not in starts)
    return end
