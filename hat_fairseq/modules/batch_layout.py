"""`BatchLayout`: the facts about a batch that all layers of an encoder share, computed once before the first layer.

Which positions are padding, which tokens represent spans of the document (sentences, segments, blocks), which tokens
are global, and the slot of each input token. The layers see a sequence of slots. Moving padding to the right, cutting a
document into segments, inserting representatives and rolling are one map from tokens to slots. `arrange_documents`
synchronises host and device once. Attention masks are derived from a layout once and reused by all layers.

Sentences: Rohde et al. 2021, section 3.1.

Legend: B documents, T input tokens, T' slots, S representatives of the document with most, R rows of L slots, C
channels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ..kernels import naive, prepare_mask
from .embedding import position_rows

Cached = TypeVar("Cached")


def safe_padding_mask(padding_mask: Tensor) -> Tensor:
    """Returns the (B, K) mask with a row of nothing but padding as unpadded: a softmax over no key is NaN."""
    return padding_mask & ~padding_mask.all(dim=1, keepdim=True)


@dataclass(frozen=True)
class Slots:
    """The slot of each input token.

    Attributes:
        index: (B, T) the slot of each token, from 0; T', one beyond the last slot, for padding.
        size: T'.
    """

    index: Tensor
    size: int

    def widened(self, size: int) -> Slots:
        """Returns the same with empty slots at the end, at least `size` in all."""
        size = max(size, self.size)
        return Slots(self.index.masked_fill(self.index == self.size, size), size)

    def scatter(self, ids: Tensor, fill: int) -> Tensor:
        """Maps (B, T) ids of tokens -> (B, T'), `fill` in every other slot."""
        return ids.new_full((len(ids), self.size + 1), fill).scatter(1, self.index, ids)[:, : self.size]

    def put(self, x: Tensor, states: Tensor) -> Tensor:
        """Returns (B, T', C) states of slots with those of tokens replaced by the (B, T, C) `states`."""
        target = self.index.unsqueeze(-1).expand_as(states)
        return F.pad(x, (0, 0, 0, 1)).scatter(1, target, states)[:, : self.size]

    def gather(self, x: Tensor) -> Tensor:
        """Maps (B, T', C) states of slots -> (B, T, C) states of tokens, zeros for padding."""
        outside = (self.index == self.size).unsqueeze(-1)
        index = self.index.unsqueeze(-1).masked_fill(outside, 0).expand(-1, -1, x.size(-1))
        return x.gather(1, index).masked_fill(outside, 0)


@dataclass(frozen=True)
class Representatives:
    """Tokens that represent spans, or global tokens.

    Attributes:
        positions: (B, S) slots; T' where a document has fewer than S.
        padding: (B, S) True = the document has no such representative; None when all have S.
        unit: what a representative stands for: sentence, segment or block.
        inserted: the representatives are no tokens of the document.
        owners: None: the state of a representative is that of its slot. Else (B, T') the representative that each slot
            belongs to, from 0, -1 for padding; the state is the mean of these slots.
    """

    positions: Tensor
    padding: Tensor | None = None
    unit: str = "sentence"
    inserted: bool = False
    owners: Tensor | None = None

    def gather(self, x: Tensor) -> Tensor:
        """Maps (B, T', C) states of all slots -> (B, S, C) states of the representatives; without a slot, of slot 0."""
        if self.owners is not None:
            return span_means(x, self.owners, self.positions.size(1))[0]
        positions = self.positions.masked_fill(self.positions == x.size(1), 0)
        return x.gather(1, positions.unsqueeze(-1).expand(-1, -1, x.size(-1)))

    def scatter(self, x: Tensor, states: Tensor) -> Tensor:
        """Returns (B, T', C) states with those of the representatives replaced by the (B, S, C) `states`."""
        return Slots(self.positions, x.size(1)).put(x, states)


@dataclass(frozen=True)
class KeyMask:
    """Which keys the queries of a row attend to.

    Attributes:
        allowed: (R, 1, 1, L) of `kernels.prepare_mask`: True = attends to it, or on a GPU 0 and -inf, to add to scores.
            All keys in an empty row: a softmax over no key is NaN.
        empty: (R, 1, 1) True = a row of nothing but padding; None where no document is empty, see `empty_rows`.
    """

    allowed: Tensor
    empty: Tensor | None


@dataclass(frozen=True)
class BatchLayout:
    """What all layers of an encoder need to know about a batch.

    Attributes:
        padding: (B, T') True = padding; None when nothing is padded.
        representatives: the tokens that represent spans, or None.
        global_tokens: the tokens that attend to all tokens and are attended to by all, or None.
        slots: the slot of each input token; None: token t is in slot t.
        empty_rows: whether a row or a segment of nothing but padding exists.
        row_lengths: the number of slots that each document fills; None if only the device knows them.
        positions: (B, T') for rotary positions; None: a slot's position is its number in its row. Only differences
            count.
    """

    padding: Tensor | None = None
    representatives: Representatives | None = None
    global_tokens: Representatives | None = None
    slots: Slots | None = None
    empty_rows: bool = False
    row_lengths: tuple[int, ...] | None = None
    positions: Tensor | None = None
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def among_representatives(self) -> BatchLayout:
        """Returns the layout of the (B, S, C) representatives when they attend to each other."""
        assert self.representatives is not None
        return BatchLayout(self.representatives.padding, empty_rows=self.empty_rows)

    def part(self, begin: int, end: int, numbers: Tensor | None = None) -> BatchLayout:
        """Returns the layout of the slots from `begin` to `end`, for layers that look no further than these.

        `numbers`: (1, T') of the slots, where positions count in the row; angles of other ones are rounded differently.
        """
        all_positions = numbers if self.positions is None else self.positions
        padding, positions = (None if x is None else x[:, begin:end] for x in (self.padding, all_positions))
        make = partial(BatchLayout, padding, empty_rows=self.empty_rows, positions=positions)
        return self.cached(("part", begin, end), make)

    def slots_of(self, tokens: Tensor) -> Tensor:
        """Returns the (B, T) slot of each token of the input; T' for padding."""
        if self.slots is not None:
            return self.slots.index
        index = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
        return index if self.padding is None else index.masked_fill(self.padding, tokens.size(1))

    def gather(self, x: Tensor) -> Tensor:
        """Maps (B, T', C) states of slots -> (B, T, C) states of input tokens."""
        return x if self.slots is None else self.slots.gather(x)

    def key_mask(self, x: Tensor, row_length: int | None = None) -> KeyMask | None:
        """Makes the mask of self-attention of the (B, T', C) states within rows; None when nothing is masked.

        `row_length`: L; documents are divided into rows of L slots, the last one filled up with padding. None: one row
        a document.
        """
        length = row_length or x.size(1)
        missing = -x.size(1) % length
        if self.padding is None and not missing:
            return None

        def make() -> KeyMask:
            padding = x.new_zeros(x.shape[:2], dtype=torch.bool) if self.padding is None else self.padding
            rows = F.pad(padding, (0, missing), value=True).reshape(-1, length)
            empty = rows.all(dim=1, keepdim=True)
            allowed = prepare_mask((~rows | empty)[:, None, None], x.dtype)
            return KeyMask(allowed, empty.unsqueeze(-1) if self.empty_rows else None)

        return self.cached(("keys", x.dtype, row_length), make)

    def cached(self, key: Hashable, make: Callable[[], Cached]) -> Cached:
        """Returns the result of `make`, which only the first layer that needs it calls."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def lengths(self, x: Tensor) -> Sequence[int]:
        """Returns the place after the last token of each row of the (B, T', C) states."""
        if self.row_lengths is not None:
            return self.row_lengths
        if self.padding is None:
            return [x.size(1)] * len(x)
        return (~self.padding * torch.arange(1, x.size(1) + 1, device=x.device)).amax(dim=1).tolist()

    def real(self, positions: Tensor, length: int) -> Tensor:
        """Returns whether positions are tokens of rows of `length`: of their shape, or (B, ...) with padding."""
        inside = (positions >= 0) & (positions < length)
        return inside if self.padding is None else inside & ~self.padding[:, positions.clamp(0, length - 1)]


def on_representatives(x: Tensor, layout: BatchLayout, function: Callable[..., Tensor], *args: Any) -> Tensor:
    """Replaces in the (B, T', C) states those of the representatives by `function(states, *args)`, (B, S, C) each."""
    assert layout.representatives is not None
    return layout.representatives.scatter(x, function(layout.representatives.gather(x), *args))


def span_means(states: Tensor, spans: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Averages the (B, T, C) states of each span, such as a sentence or paragraph, in fp32 or wider.

    Args:
        spans: (B, T) span of each token, from 0; -1 for tokens in no span.
        most: N, the spans of the document with most.
    Returns:
        (B, N, C) means, zeros for a span without tokens; and (B, N), True = a span without tokens.
    """
    # The states of tokens in no span go to a spare last slot.
    slots = torch.where(spans < 0, most, spans)
    summed = naive.wide(states)
    total = summed.new_zeros(len(states), most + 1, states.size(2))
    total = total.scatter_add(1, slots.unsqueeze(-1).expand_as(summed), summed)[:, :most]
    sizes = summed.new_zeros(len(states), most + 1).scatter_add(1, slots, torch.ones_like(slots, dtype=summed.dtype))
    sizes = sizes[:, :most]
    return (total / sizes.clamp(min=1).unsqueeze(-1)).to(states), sizes.eq(0)


@dataclass(frozen=True)
class Arranged:
    """A batch as the layers see it: (B, T') ids, the row of the position table for each, and the facts about it."""

    tokens: Tensor
    rows: Tensor
    layout: BatchLayout


def sentence_starts(tokens: Tensor, bos: int, pad: int) -> Tensor:
    """Maps (B, T) ids, padded on either side -> (B, T) True where a sentence starts.

    That is at every BOS marker, and always at a document's first token: a document without markers is one sentence, so
    that every parameter gets a gradient in every step. In a row of nothing but padding it is the first position.
    """
    first = tokens.ne(pad).to(torch.uint8).argmax(dim=1, keepdim=True)
    return tokens.eq(bos).scatter(1, first, True)


def representatives_at(starts: Tensor, most: int, fewest: int) -> Representatives:
    """Makes representatives of the tokens that are True in the (B, T) `starts`.

    A document has `fewest` to `most` (S), arguments because computing them here would synchronise with the device.
    """
    batch, length = starts.shape
    # The k-th representative of a row goes to place k; all other tokens go to a spare last place, cut off below.
    places = torch.where(starts, starts.cumsum(dim=1) - 1, most)
    index = torch.arange(length, device=starts.device).expand(batch, length)
    positions = index.new_zeros(batch, most + 1).scatter(1, places, index)[:, :most]
    if most == fewest:
        return Representatives(positions)
    padding = torch.arange(most, device=starts.device) >= starts.sum(dim=1, keepdim=True)
    return Representatives(positions.masked_fill(padding, length), padding)


def arrange_documents(
    tokens: Tensor,
    pad: int,
    bos: int | None = None,
    mark_global: Callable[[Tensor], Tensor] | None = None,
    means: bool = False,
) -> Arranged:
    """Arranges (B, T) ids, padded on either side, as documents whose tokens stay in their order.

    Padding on the left is moved to the right, so that attention patterns that depend on positions give the same result
    for a document in any batch.

    Args:
        bos: id of the sentence marker, whose tokens are the representatives; None: there are none.
        mark_global: (B, T) ids, padded on the right -> (B, T) True = a global token; None: there are none.
        means: the state of a representative is the mean of its sentence, marker included.
    """
    input_padding = tokens.eq(pad)
    slot = ((~input_padding).cumsum(dim=1) - 1).masked_fill(input_padding, tokens.size(1))
    slots = Slots(slot, tokens.size(1))
    tokens = slots.scatter(tokens, pad)
    padding = tokens.eq(pad)
    none = torch.zeros_like(padding)
    starts = none if bos is None else sentence_starts(tokens, bos, pad)
    marked = none if mark_global is None else mark_global(tokens)
    moved = input_padding[:, :-1] & ~input_padding[:, 1:]  # padding before a token
    # Four counts of each document, in one synchronisation.
    counts = torch.stack([each.sum(dim=1) for each in (~padding, starts, marked, moved)]).tolist()
    lengths, num_starts, num_marked, num_moved = counts
    representatives = global_tokens = None
    if bos is not None:
        owners = (starts.cumsum(dim=1) - 1).masked_fill(padding, -1) if means else None
        representatives = replace(representatives_at(starts, max(num_starts), min(num_starts)), owners=owners)
    if any(num_marked):
        global_tokens = representatives_at(marked, max(num_marked), min(num_marked))
    layout = BatchLayout(
        padding=padding if min(lengths) < tokens.size(1) else None,
        representatives=representatives,
        global_tokens=global_tokens,
        slots=slots if any(num_moved) else None,
        empty_rows=min(lengths) == 0,
        row_lengths=tuple(lengths),
    )
    return Arranged(tokens, position_rows(tokens, pad), layout)


def rolled(batch: Arranged, shift: int) -> Arranged:
    """Shifts the tokens of each document cyclically by `shift` places, and their positions with them.

    Liu et al. 2022 (ERNIE-Sparse), section 3.3 and A.4. The pattern of the attention stays in place: token i of n sits
    where token (i + shift) mod n was. Padding and inserted representatives do not move, so the result does not depend
    on other documents of the batch. With full attention nothing changes. O(T log T), no host-device synchronisation.

    Raises:
        ValueError: representatives that are tokens of the document; the layers would run on the wrong ones.
    """
    layout, size = batch.layout, batch.tokens.size(1)
    if layout.representatives is not None and not layout.representatives.inserted:
        raise ValueError(
            f"roll {shift}: sentences or segments of this model are represented by tokens of the document, which "
            "cannot be rolled; take a model without them (--no-hierarchy, or another --arch), or roll 0"
        )
    slots = layout.slots_of(batch.tokens)
    real = slots < size
    rank = (real.cumsum(dim=1) - 1 + shift) % real.sum(dim=1, keepdim=True).clamp(min=1)
    target = slots.sort(dim=1).values.gather(1, rank.clamp(min=0)).masked_fill(~real, size)

    def move(x: Tensor) -> Tensor:
        x = F.pad(x, (0, 1))
        return x.scatter(1, target, x.gather(1, slots))[:, :size]

    layout = replace(layout, slots=Slots(target, size))
    return Arranged(move(batch.tokens), move(batch.rows), layout)
