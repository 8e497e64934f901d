"""Limits of length: what stays of a row that is too long, and consecutive sentences packed up to a limit.

`error`                refuse
`truncate`             keep the first tokens, the last sentence possibly cut (Rohde et al. 2021, section 4.1)
`truncate-sentences`   keep whole sentences only
`chunk`                several inputs that together cover everything: chunks of `group_within`, or `cut_windows`
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hat_fairseq.data.text import BOS_TOKEN, EOS_TOKEN

Item = TypeVar("Item")
Token = TypeVar("Token")
Flags = Sequence[bool] | NDArray[np.bool_]

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
        """Returns the sizes of the parts, which may be empty."""
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
    """Counts the segments that an encoder makes of the first 1, 2 ... tokens with `following` tokens after them.

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
        policy: one of `options.POLICIES` but `chunk`.
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


def all_truncated(rows: int, truncated: int, needed: Mapping[str, int]) -> str | None:
    """Says that each of some rows was truncated, and with which limits none would be; None if that is not so.

    `needed`: the least value of each option with which no row is truncated.
    """
    if not needed or truncated < rows:
        return None
    limits = " and ".join(f"{option} {most}" for option, most in sorted(needed.items()))
    return (
        f"every row was truncated ({rows:,} of {rows:,}), and with {limits} none would be: preprocess so, and train a "
        "model that takes as much"
    )


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
    """Merges consecutive units into segments of at most `size` tokens, without their markers (Chalkidis et al. 2022).

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
    """Fills rows of at most `size` tokens with whole units of consecutive documents.

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
            before: tuple[str, ...] = (EOS_TOKEN, BOS_TOKEN)
            for unit in units:
                room = min(limits, default=1 + len(unit)) - 1
                counts["segments_longer_than_row"] += len(unit) > room
                for piece in cut(unit, room):
                    yield before, piece
                    before = (BOS_TOKEN,) if markers else ()

    def cost(piece: tuple[tuple[str, ...], Sequence[str]], first: bool) -> tuple[int, int]:
        before, tokens = piece
        return (1 if first else len(before)) + len(tokens), segments_of(len(tokens), segment_length)

    for (_, first), *others in group_within(pieces(), cost, (size, max_segments)):
        yield [BOS_TOKEN, *first, *(token for before, tokens in others for token in (*before, *tokens))]


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
    segments = [0, *accumulate(segments_of(length, segment_length) for length in lengths)]

    def fit(begin: int, end: int) -> bool:
        return not exceeds((tokens[end] - tokens[begin], segments[end] - segments[begin]), (size, max_segments))

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
