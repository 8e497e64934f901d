"""The policies for input that is longer than the limit. The encoder applies them to tokens, the tasks to ids.

`error`                refuse
`truncate`             keep the first tokens, the last sentence possibly cut (Rohde et al. 2021, section 4.1)
`truncate-sentences`   keep whole sentences only
`chunk`                several inputs of whole sentences that together cover everything
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

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


def fit_parts(
    is_bos: Sequence[Flags], limit: int, policy: str, truncated: int | None, offered: Sequence[str]
) -> tuple[list[int], Counter[str]]:
    """Tokens to keep of each part of a row, and the cost: `rows_over_limit`, and those of `fit` with `source_`.

    Args:
        is_bos, policy, offered: as of `fit`, but no `chunk`.
        limit: of all parts with their separators.
        truncated: number of the part to truncate; None for the longest one, until both have the same length.

    Raises:
        LongInputError: too long and the policy is `error`, or nothing would be left of the truncated part.
    """
    lengths = list(map(len, is_bos))
    total = sum(lengths) + SEPARATORS * (len(lengths) - 1)
    if total <= limit:
        return lengths, Counter()
    if policy == "error":
        ways = " or ".join(offered)
        raise LongInputError(
            f"{total + 1} tokens with </s> are more than the limit of {limit + 1}; raise --max-source-tokens, or "
            f"choose --long-source {ways}"
        )
    counts = Counter(rows_over_limit=1)
    ends = []
    for flags, share in zip(is_bos, _shares(lengths, limit, truncated), strict=True):
        if share < LEAST:
            raise LongInputError(f"its parts have {lengths} tokens: the limit of {limit + 1} leaves no room for both")
        (kept,), cost = fit(flags, share, policy)
        ends.append(kept.stop)
        counts.update({f"source_{name}": number for name, number in cost.items() if name != "documents_over_limit"})
    return ends, counts


def _shares(lengths: Sequence[int], limit: int, truncated: int | None) -> list[int]:
    """The number of tokens allowed for each of one or two parts that are together above the limit."""
    room = limit - SEPARATORS * (len(lengths) - 1)
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
