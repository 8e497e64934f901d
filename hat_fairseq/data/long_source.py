"""One policy for input that is longer than the limit; used on strings by the pipeline and on ids by the task.

``error``               refuse
``truncate``            keep the first tokens, the last sentence possibly cut (Rohde et al. 2021, section 4.1)
``truncate-sentences``  keep whole sentences only
``chunk``               several inputs of whole sentences that together cover everything
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Flags = Sequence[bool] | NDArray[np.bool_]

POLICIES = ("error", "truncate", "truncate-sentences", "chunk")


class LongSourceError(ValueError):
    """The input is longer than the limit and the policy is ``error``."""


def fit(
    is_bos: Flags, max_tokens: int, policy: str, offered: Sequence[str] = POLICIES[1:]
) -> tuple[list[slice], Counter[str]]:
    """Say which tokens of one document to keep.

    Args:
        is_bos: one flag per token, True where the token is a sentence marker (a list or a numpy array). Text before
            the first marker is a sentence of its own.
        max_tokens: the limit in tokens, markers included; at least 1.
        policy: one of ``POLICIES``.
        offered: the policies that the message of a refusal names as the way out.

    Returns:
        The slices to keep, none of them empty unless the document is: one, or for ``chunk`` one for each chunk,
        contiguous and covering every token. And what it cost: ``documents_over_limit``, ``tokens_truncated`` (markers
        included), ``sentences_truncated`` (lost whole), ``sentences_cut`` (lost in part), ``chunks`` and
        ``sentences_longer_than_chunk``. The counter is empty for a document within the limit.

    Raises:
        LongSourceError: the document is too long and the policy is ``error``.
        ValueError: unknown policy, or a limit below 1.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy for long input {policy!r}; choose one of {', '.join(POLICIES)}")
    if max_tokens < 1:
        raise ValueError(f"the limit for long input must be at least 1 token, not {max_tokens}")
    length = len(is_bos)
    if length <= max_tokens:
        return [slice(0, length)], Counter()

    starts = _sentence_starts(is_bos)
    if policy == "error":
        raise LongSourceError(
            f"{length} tokens are more than the limit of {max_tokens}; raise the limit or choose another policy: "
            f"{', '.join(offered)}"
        )
    counts = Counter(documents_over_limit=1)
    if policy == "chunk":
        return _chunks(starts, length, max_tokens, counts), counts
    end = _truncated_end(starts, max_tokens, whole_sentences=policy == "truncate-sentences")
    lost_whole = sum(start >= end for start in starts)
    counts["tokens_truncated"] = length - end
    counts["sentences_truncated"] = lost_whole
    # The last sentence kept is cut unless the next one starts exactly where we stopped.
    counts["sentences_cut"] = int(end not in starts)
    return [slice(0, end)], +counts


def _sentence_starts(is_bos: Flags) -> list[int]:
    starts = np.flatnonzero(np.asarray(is_bos, dtype=bool)).tolist()
    return starts if starts and starts[0] == 0 else [0, *starts]


def _truncated_end(starts: list[int], max_tokens: int, whole_sentences: bool) -> int:
    """Where to stop, at most ``max_tokens`` and at least 1."""
    within = [start for start in starts if 0 < start <= max_tokens]
    if whole_sentences and within:
        return within[-1]
    end = max_tokens
    markers = set(within)
    while end > 1 and end - 1 in markers:  # a marker with nothing after it marks no sentence
        end -= 1
    return end


def _chunks(starts: list[int], length: int, max_tokens: int, counts: Counter[str]) -> list[slice]:
    """Greedy: a piece goes into the current chunk as long as it fits."""
    chunks: list[slice] = []
    begin = 0
    previous_end = 0
    for piece_end in _piece_ends(starts, length, max_tokens, counts):
        if piece_end - begin > max_tokens:
            chunks.append(slice(begin, previous_end))
            begin = previous_end
        previous_end = piece_end
    chunks.append(slice(begin, length))
    counts["chunks"] = len(chunks)
    return chunks


def _piece_ends(starts: list[int], length: int, max_tokens: int, counts: Counter[str]) -> Iterator[int]:
    """Ends of the sentences, and inside a sentence longer than a chunk one end every ``max_tokens`` tokens."""
    for start, end in zip(starts, [*starts[1:], length], strict=True):
        if end - start > max_tokens:
            counts["sentences_longer_than_chunk"] += 1
            yield from range(start + max_tokens, end, max_tokens)
        yield end
