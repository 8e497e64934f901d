"""The policies for input that is longer than the limit. The encoder applies them to tokens, the tasks to ids.

`error`                refuse
`truncate`             keep the first tokens, the last sentence possibly cut (Rohde et al. 2021, section 4.1)
`truncate-sentences`   keep whole sentences only
`chunk`                several inputs of whole sentences that together cover everything
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .packing import cut, fill

Flags = Sequence[bool] | NDArray[np.bool_]

POLICIES = ("error", "truncate", "truncate-sentences", "chunk")
SEPARATORS = 2  # tokens between two parts of a row
LEAST = 2  # tokens of a part: a marker and a word


class LongInputError(ValueError):
    """The input is longer than the limit and the policy is `error`, or its parts cannot be truncated enough."""


def fit(
    is_bos: Flags, max_tokens: int, policy: str, offered: Sequence[str] = POLICIES[1:]
) -> tuple[list[slice], Counter[str]]:
    """Say which tokens of one document to keep.

    Args:
        is_bos: True where a token is a sentence marker; text before the first marker is a sentence of its own.
        max_tokens: the limit in tokens, markers included; at least 1.
        policy: one of `POLICIES`; LongInputError for a document above the limit if it is `error`.
        offered: the policies that the message of a refusal names as the way out.

    Returns:
        The slices to keep, none of them empty unless the document is: one, or for `chunk` one for each chunk,
        contiguous and covering every token. And what it cost: `documents_over_limit`, `tokens_truncated` (markers
        included), `sentences_truncated` (lost whole), `sentences_cut` (lost in part), `chunks` and
        `sentences_longer_than_chunk`. The counter is empty for a document within the limit.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy for long input {policy!r}; choose one of {', '.join(POLICIES)}")
    if max_tokens < 1:
        raise ValueError(f"the limit for long input must be at least 1 token, not {max_tokens}")
    length = len(is_bos)
    if length <= max_tokens:
        return [slice(0, length)], Counter()
    starts = np.flatnonzero(np.asarray(is_bos, dtype=bool)).tolist()
    if not starts or starts[0] > 0:  # text before the first marker
        starts.insert(0, 0)
    if policy == "error":
        raise LongInputError(
            f"{length + 1} tokens with </s> are more than the limit of {max_tokens + 1}; raise the limit or choose "
            f"another policy: {', '.join(offered)}"
        )
    counts = Counter(documents_over_limit=1)
    if policy == "chunk":
        return _chunks(starts, length, max_tokens, counts), counts
    end = _truncated_end(starts, max_tokens, whole_sentences=policy == "truncate-sentences")
    counts["tokens_truncated"] = length - end
    counts["sentences_truncated"] = sum(start >= end for start in starts)
    # The last sentence kept is cut unless the next one starts exactly where we stopped.
    counts["sentences_cut"] = int(end not in starts)
    return [slice(0, end)], +counts


class Measure(NamedTuple):
    """What a limit counts in the parts of a row."""

    unit: str
    option: str
    limit: int
    sizes: list[NDArray[np.int_]]  # of the first 1, 2 ... tokens of each part
    fixed: int = 0  # what counts beside the parts

    @property
    def total(self) -> int:
        return self.fixed + sum(int(each[-1]) for each in self.sizes)

    def ends(self, truncated: int | None) -> list[int]:
        """The number of tokens allowed for each part; `truncated` as of `fit_parts`."""
        shares = _shares([int(each[-1]) for each in self.sizes], self.limit - self.fixed, truncated)
        return [int(np.searchsorted(each, share, "right")) for each, share in zip(self.sizes, shares, strict=True)]


def count_segments(is_bos: Flags, segment_length: int, following: int) -> NDArray[np.int_]:
    """Segments that an encoder makes of the first 1, 2 ... tokens with `following` tokens behind them.

    One begins at each marker, and after each `segment_length` tokens; see `modules.segments.slots_at_markers`.
    """
    index = np.arange(len(is_bos))
    offset = index - np.maximum.accumulate(np.where(is_bos, index, 0))
    earlier = (offset % segment_length == 0).cumsum() - offset // segment_length
    return earlier + (offset + following) // segment_length


def row_measures(
    parts: Sequence[Flags], max_tokens: int | None, max_segments: int | None, segment_length: int
) -> Iterator[Measure]:
    """The limits of a row with its separators and its `</s>`; None for no limit."""
    if max_tokens is not None:
        sizes = [1 + np.arange(len(part)) for part in parts]
        fixed = SEPARATORS * (len(parts) - 1) + 1
        yield Measure("tokens with </s>", "--max-source-tokens", max_tokens, sizes, fixed)
    if max_segments is not None:
        following = [*[SEPARATORS] * (len(parts) - 1), 1]
        sizes = [count_segments(part, segment_length, n) for part, n in zip(parts, following, strict=True)]
        yield Measure("segments", "--max-segments", max_segments, sizes)


def fit_parts(
    is_bos: Sequence[Flags], limits: Iterable[Measure], policy: str, truncated: int | None, offered: Sequence[str]
) -> tuple[list[int], Counter[str]]:
    """Tokens to keep of each part of a row, and the cost: `rows_over_limit`, and those of `fit` with `source_`.

    Args:
        is_bos, policy, offered: as of `fit`, but no `chunk`.
        limits: see `row_measures`.
        truncated: number of the part to truncate; None for the longest one, until both have the same length.

    Raises:
        LongInputError: too long and the policy is `error`, or nothing would be left of the truncated part.
    """
    exceeded = [measure for measure in limits if measure.total > measure.limit]
    if not exceeded:
        return list(map(len, is_bos)), Counter()
    problem = " and ".join(f"{each.total} {each.unit} are more than the limit of {each.limit}" for each in exceeded)
    if policy == "error":
        ways = f"raise {' and '.join(each.option for each in exceeded)}, or choose --long-source {' or '.join(offered)}"
        raise LongInputError(f"{problem}; {ways}")
    counts, ends = Counter(rows_over_limit=1), []
    for flags, shares in zip(is_bos, zip(*(each.ends(truncated) for each in exceeded), strict=True), strict=True):
        if min(shares) < LEAST:
            lengths = list(map(len, is_bos))
            raise LongInputError(f"its parts have {lengths} tokens: {problem}, which leaves no room for both")
        (kept,), cost = fit(flags, min(shares), policy)
        ends.append(kept.stop)
        counts.update({f"source_{name}": number for name, number in cost.items() if name != "documents_over_limit"})
    return ends, counts


def _shares(lengths: Sequence[int], room: int, truncated: int | None) -> list[int]:
    """The room for each of one or two parts that are together longer than all of it."""
    if len(lengths) == 1:
        return [room]
    cut_part = (0 if lengths[0] >= lengths[1] else 1) if truncated is None else truncated
    other = lengths[1 - cut_part] if truncated is not None else min(lengths[1 - cut_part], room // 2)
    return [room - other, other] if cut_part == 0 else [other, room - other]


def _truncated_end(starts: list[int], max_tokens: int, whole_sentences: bool) -> int:
    """The end of the kept tokens, at most `max_tokens` and at least 1."""
    within = [start for start in starts if 0 < start <= max_tokens]
    if whole_sentences and within:
        return within[-1]
    end = max_tokens
    markers = set(within)
    while end > 1 and end - 1 in markers:  # a marker with nothing after it marks no sentence
        end -= 1
    return end


def _chunks(starts: list[int], length: int, max_tokens: int, counts: Counter[str]) -> list[slice]:
    """Whole sentences as long as they fit; a sentence longer than a chunk is cut."""
    sentences = [range(start, end) for start, end in zip(starts, [*starts[1:], length], strict=True)]
    counts["sentences_longer_than_chunk"] += sum(len(sentence) > max_tokens for sentence in sentences)
    pieces = (piece for sentence in sentences for piece in cut(sentence, max_tokens))
    sizes = [sum(map(len, group)) for group in fill(pieces, lambda piece, _: (len(piece),), (max_tokens,))]
    counts["chunks"] = len(sizes)
    return [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
