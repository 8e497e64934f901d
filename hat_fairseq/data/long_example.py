"""The policy for long input, for an example of one or two parts: which part is truncated, and by how much."""

from collections import Counter
from collections.abc import Sequence

from hat_fairseq.data.long_source import Flags, LongSourceError
from hat_fairseq.data.long_source import fit as fit_part

__all__ = ["SEPARATORS", "LongSourceError", "fit", "shares"]

SEPARATORS = 2  # tokens between two parts
LEAST = 2  # tokens of a part: a marker and a word
TRUNCATED_PART = {"qa": 1, "choice": 0}  # the part of a question and its text, of a context and a choice
WAYS_OUT = {"qa": ("truncate", "truncate-sentences", "chunk")}  # choices of --long-source; of all others the first two


def fit(is_bos: Sequence[Flags], limit: int, policy: str, task: str, counts: Counter[str]) -> list[int]:
    """The number of tokens to keep of each part.

    Args:
        is_bos: for each part one flag per token, True at markers.
        limit: of all parts with their separators.
        policy: ``error``, ``truncate`` or ``truncate-sentences``.
        task: the kind of example: for ``qa`` and ``choice`` the context is truncated, else the longest part.
        counts: takes ``rows_over_limit``, and ``source_`` with the names of ``long_source.fit``.

    Raises:
        LongSourceError: too long and the policy is ``error``, or nothing would be left of the truncated part.
    """
    lengths = list(map(len, is_bos))
    total = sum(lengths) + SEPARATORS * (len(lengths) - 1)
    if total <= limit:
        return lengths
    if policy == "error":
        ways = " or ".join(WAYS_OUT.get(task, WAYS_OUT["qa"][:2]))
        raise LongSourceError(
            f"{total} tokens are more than the limit of {limit}; raise --max-source-tokens or choose --long-source "
            f"{ways}"
        )
    ends = []
    for flags, share in zip(is_bos, shares(lengths, limit, TRUNCATED_PART.get(task)), strict=True):
        if share < LEAST:
            raise LongSourceError(f"its parts have {lengths} tokens, so the limit of {limit} leaves no room for both")
        (kept,), cost = fit_part(flags, share, policy)
        ends.append(kept.stop)
        counts.update({f"source_{name}": number for name, number in cost.items() if name != "documents_over_limit"})
    counts["rows_over_limit"] += 1
    return ends


def shares(lengths: Sequence[int], limit: int, truncated: int | None) -> list[int]:
    """The number of tokens allowed for each part.

    Args:
        lengths: of one or two parts, together above the limit.
        limit: of all, separators included.
        truncated: number of the part to truncate; None for the longest one, until both have the same length.
    """
    room = limit - SEPARATORS * (len(lengths) - 1)
    if len(lengths) == 1:
        return [room]
    if truncated is not None:
        other = lengths[1 - truncated]
        return [room - other, other] if truncated == 0 else [other, room - other]
    longest = 0 if lengths[0] >= lengths[1] else 1
    keeps = min(lengths[1 - longest], room // 2)
    return [room - keeps, keeps] if longest == 0 else [keeps, room - keeps]
