"""Keys and values kept between the steps of incremental decoding.

Two kinds, because two things happen to them:

- `GrowingCache` (decoder self-attention): one more token per step, rows permuted by beam search. The buffer doubles
when
  full, so n steps copy O(n) keys, not O(n^2).
- `StaticCache` (cross-attention): fixed once projected, one row per *document*. The hypotheses of a document are
  consecutive query rows and read the same keys, so a beam of k costs the memory of one hypothesis.

Shapes: R rows (documents x beam), D documents, H heads, T generated tokens, S source positions, E channels per head.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


def documents_in_order(order: Tensor, rows_per_document: int) -> Tensor | None:
    """Documents that remain when rows are reordered, or None when `order` tears the rows of a document apart.

    Args:
        order: (R',) the old row that each new row takes over.
        rows_per_document: consecutive rows that belong to one document (the beam size).
    Returns:
        (R' / rows_per_document,) indices of the old documents.
    """
    if order.numel() % rows_per_document:
        return None
    documents = order.view(-1, rows_per_document) // rows_per_document
    if not bool((documents == documents[:, :1]).all()):
        return None
    return documents[:, 0]


def is_identity(order: Tensor, size: int) -> bool:
    """True when `order` is 0..size-1: nothing moves and nothing needs a copy."""
    return order.numel() == size and torch.equal(order, torch.arange(size, device=order.device))


def expansion_factor(order: Tensor, documents: int) -> int:
    """k when `order` is 0..documents-1, each k times in a row (how a generator opens a beam of k), otherwise 1."""
    k = order.numel() // documents if documents else 1
    if k <= 1 or order.numel() != k * documents:
        return 1
    expected = torch.arange(documents, device=order.device).repeat_interleave(k)
    return k if torch.equal(order, expected) else 1


class GrowingCache:
    """Keys and values of the tokens generated so far."""

    def __init__(self) -> None:
        self.length = 0
        self._keys: Tensor | None = None  # (R, H, capacity, E)
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds (R, H, n, E) keys and values; returns all of them so far, (R, H, T, E), as views of the buffers."""
        end = self.length + keys.size(2)
        if self._keys is None or self._values is None or end > self._keys.size(2):
            self._grow(keys, capacity=max(2 * end, 32))
        assert self._keys is not None and self._values is not None
        self._keys[:, :, self.length : end] = keys
        self._values[:, :, self.length : end] = values
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def _grow(self, like: Tensor, capacity: int) -> None:
        rows, heads, _, channels = like.shape
        for name in ("_keys", "_values"):
            old = getattr(self, name)
            buffer = like.new_empty(rows, heads, capacity, channels)
            if old is not None:
                buffer[:, :, : self.length] = old[:, :, : self.length]
            setattr(self, name, buffer)

    @property
    def rows(self) -> int:
        return 0 if self._keys is None else self._keys.size(0)

    def reorder(self, order: Tensor) -> None:
        """Row i becomes the old row `order[i]`; rows may be repeated or dropped."""
        if self._keys is None or self._values is None:
            return
        rows, heads, capacity, channels = self._keys.shape
        for name in ("_keys", "_values"):
            # Only the used part is read; the rest of the new buffer stays uninitialised, as in `_grow`.
            buffer = self._keys.new_empty(order.numel(), heads, capacity, channels)
            buffer[:, :, : self.length] = getattr(self, name)[:, :, : self.length].index_select(0, order)
            setattr(self, name, buffer)


class StaticCache:
    """Keys and values of a fixed memory, one row per document, shared by the documents' query rows."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None  # (D, H, S, E)
        self.values: Tensor | None = None
        self.rows_per_document = 1  # as seen at the last attention; never set from outside

    def reorder(self, order: Tensor) -> None:
        """Follows a reordering of the query rows: drops or permutes documents; copies nothing when none changes."""
        if self.keys is None or self.values is None:
            return
        documents = documents_in_order(order, self.rows_per_document)
        if documents is None:  # rows of a document were torn apart: fall back to one row of keys per query row
            documents, self.rows_per_document = order // self.rows_per_document, 1
        elif is_identity(documents, self.keys.size(0)):
            return
        self.keys = self.keys.index_select(0, documents)
        self.values = self.values.index_select(0, documents)


@dataclass
class DecoderLayerCache:
    """What one hierarchical decoder layer keeps between steps."""

    self_attn: GrowingCache = field(default_factory=GrowingCache)
    encoder_attn: StaticCache = field(default_factory=StaticCache)
    sentence_attn: StaticCache = field(default_factory=StaticCache)

    def reorder(self, order: Tensor) -> None:
        self.self_attn.reorder(order)
        self.encoder_attn.reorder(order)
        self.sentence_attn.reorder(order)
