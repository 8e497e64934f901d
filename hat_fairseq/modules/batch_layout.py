"""`BatchLayout`: padding and special tokens of a batch, computed once before the first layer of an encoder.

The method `forward(x, layout)` of every encoder attention gets it. It says which positions are padding, which tokens
represent spans (sentences, segments, blocks), which tokens are global, and where tokens are if the encoder moved them.
Building it is the only host-device synchronisation of a forward pass. Attention masks are derived from it once and
reused by all layers.

Legend: B documents, T positions, S representatives of the document with most, R rows of L positions, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ..kernels import prepare_mask
from .representatives import Representatives, representatives_at
from .segments import SegmentGrid
from .sentences import sentence_starts

Cached = TypeVar("Cached")


@dataclass(frozen=True)
class KeyMask:
    """Which keys the queries of a row attend to.

    Attributes:
        allowed: (R, 1, 1, L) as `kernels.attend` takes it; a row of nothing but padding allows all of its keys, because
            a softmax over no key is NaN.
        empty: (R, 1, 1) True = a row of nothing but padding; None where there is none.
        lengths: tokens of each of the R rows; None if they are known to the device only.
    """

    allowed: Tensor
    empty: Tensor | None
    lengths: tuple[int, ...] | None = None


@dataclass(frozen=True)
class BatchLayout:
    """What all layers of an encoder need to know about a batch.

    Attributes:
        padding: (B, T) True = padding; None when nothing is padded.
        representatives: the tokens that represent spans, or None.
        global_tokens: the tokens that attend to all tokens and are attended to by all, or None.
        blocks: the position of each input token, if the encoder divided the input into blocks, or None.
        order: (B, T) the token of the input at each position, if the encoder moved padding to the right, or None.
        empty_rows: whether a row or a block of nothing but padding exists.
        row_lengths: the number of tokens of each row, or None.
    """

    padding: Tensor | None = None
    representatives: Representatives | None = None
    global_tokens: Representatives | None = None
    blocks: SegmentGrid | None = None
    order: Tensor | None = None
    empty_rows: bool = False
    row_lengths: tuple[int, ...] | None = None
    _cache: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def among(self) -> BatchLayout:
        """The layout of the (B, S, C) representatives when they attend to each other."""
        assert self.representatives is not None
        return BatchLayout(self.representatives.padding, empty_rows=self.empty_rows)

    def arrange(self, x: Tensor) -> Tensor:
        """(B, T, ...) in the order of the input -> in the order of the layers."""
        return x if self.order is None else _take(x, self.order)

    def restore(self, x: Tensor) -> Tensor:
        """(B, T, ...) in the order of the layers -> in the order of the input."""
        return x if self.order is None else _take(x, self.order.argsort(dim=1))

    def key_mask(self, x: Tensor, block_length: int | None = None) -> KeyMask | None:
        """The mask of self-attention within rows, or within blocks of rows; None when nothing is masked.

        Args:
            x: (B, T, C) states, for their shape, type and device.
            block_length: L; rows are divided into blocks of L positions, the last one filled up with padding. None: one
                block a row.
        """
        missing = 0 if block_length is None else -x.size(1) % block_length
        if self.padding is None and not missing:
            return None
        length = x.size(1) if block_length is None else block_length
        return self.cached(("keys", x.dtype, block_length), lambda: self._key_mask(x, length, missing))

    def _key_mask(self, x: Tensor, length: int, missing: int) -> KeyMask:
        padding = x.new_zeros(x.shape[:2], dtype=torch.bool) if self.padding is None else self.padding
        rows = F.pad(padding, (0, missing), value=True).reshape(-1, length)
        empty = rows.all(dim=1, keepdim=True)
        allowed = (~rows | empty)[:, None, None]
        lengths = None
        # Compiled code must not read them: other lengths would compile it again.
        if not torch.compiler.is_compiling() and self.row_lengths is not None:
            begins = range(0, x.size(1) + missing, length)
            lengths = tuple(min(max(n - begin, 0), length) for n in self.row_lengths for begin in begins)
        return KeyMask(prepare_mask(allowed, x.dtype), empty.unsqueeze(-1) if self.empty_rows else None, lengths)

    def cached(self, key: Hashable, make: Callable[[], Cached]) -> Cached:
        """The result of `make`, which is called once for each key, by the first layer that needs it."""
        if key not in self._cache:
            self._cache[key] = make()
        return self._cache[key]

    def lengths(self, x: Tensor) -> Sequence[int]:
        """The number of tokens of each row of the (B, T, C) states."""
        if self.row_lengths is not None:
            return self.row_lengths
        if self.padding is None:
            return [x.size(1)] * len(x)
        padding = self.padding
        return self.cached("lengths", lambda: (~padding).sum(dim=1).tolist())

    def real(self, positions: Tensor, length: int) -> Tensor:
        """Whether positions of any shape are tokens of rows of `length`: of that shape, or (B, ...) with padding."""
        inside = (positions >= 0) & (positions < length)
        return inside if self.padding is None else inside & ~self.padding[:, positions.clamp(0, length - 1)]

    def is_global(self, positions: Tensor) -> Tensor:
        """Whether positions of any shape are global tokens, (B, ...)."""
        assert self.global_tokens is not None
        where = self.global_tokens.positions
        if self.global_tokens.padding is not None:
            where = where.masked_fill(self.global_tokens.padding, -1)
        return (where.view(*where.shape, *[1] * positions.dim()) == positions).any(dim=1)


def _take(x: Tensor, index: Tensor) -> Tensor:
    index = index.reshape(*index.shape, *[1] * (x.dim() - 2)).expand(*index.shape, *x.shape[2:])
    return x.gather(1, index)


def layout_of_documents(
    tokens: Tensor, pad: int, bos: int | None = None, is_global: Tensor | None = None
) -> BatchLayout:
    """The layout of documents whose tokens stay in their order.

    Args:
        tokens: (B, T) token ids, padded on either side. Padding on the left is moved to the right (see `order`), so
            that attention patterns that depend on positions give the same result for a document in any batch.
        pad: id of the padding token.
        bos: id of the sentence marker; None: no representatives.
        is_global: (B, T) True = a global token; None: there are none.
    """
    padding = tokens.eq(pad)
    starts = padding if bos is None else sentence_starts(tokens, bos, pad)
    marked = padding if is_global is None else is_global
    counts, global_counts = starts.sum(dim=1), marked.sum(dim=1)
    before_token = padding[:, :-1] & ~padding[:, 1:]
    facts = (padding.any(), padding.all(dim=1).any(), before_token.any(), *counts.aminmax(), *global_counts.aminmax())
    # All numbers at once: one synchronisation.
    numbers = torch.cat([torch.stack([x.long() for x in facts]), (~padding).sum(dim=1)]).tolist()
    padded, empty, moved, fewest, most, fewest_global, most_global = numbers[: len(facts)]
    order = None
    if moved:
        order = padding.to(torch.uint8).argsort(dim=1, stable=True)
        padding, starts, marked = (x.gather(1, order) for x in (padding, starts, marked))
    any_global = is_global is not None and most_global
    return BatchLayout(
        padding=padding if padded else None,
        representatives=None if bos is None else representatives_at(starts, most, fewest),
        global_tokens=representatives_at(marked, most_global, fewest_global) if any_global else None,
        order=order,
        empty_rows=bool(empty),
        row_lengths=tuple(numbers[len(facts) :]),
    )
