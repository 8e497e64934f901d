"""Keys and values kept between the steps of incremental decoding.

Two kinds, because two things happen to them:

- `GrowingCache` (decoder self-attention): more tokens with every step. A slot once written stays where it is, under any
  reordering (see `beam_cache_mask.py`); the buffer doubles when full.
- `StaticCache` (cross-attention): fixed once projected, one row per *document*. The hypotheses of a document are
  consecutive query rows and read the same keys, so a beam of k costs the memory of one hypothesis.

Shapes: R rows (documents x beam), D documents, K beam, H heads, L slots, S source positions, E channels per head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .beam_cache_mask import INTERVAL, BeamCacheMask


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
    """Keys and values of the tokens generated so far, for one self-attention.

    Args:
        beam_mask: shared by all layers of a decoder; its `append_slots` is called before the layers append.
    """

    def __init__(self, beam_mask: BeamCacheMask) -> None:
        self.beam_mask = beam_mask
        self._keys: Tensor | None = None  # (D, H, capacity, E)
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Fills the newest slots with (D, H, K x n, E) keys and values; returns all (D, H, L, E), views of buffers."""
        end = self.beam_mask.slots
        begin = end - keys.size(2)
        if self._keys is None or self._values is None or end > self._keys.size(2):
            self._grow(keys, begin)
        assert self._keys is not None and self._values is not None
        self._keys[:, :, begin:end] = keys
        self._values[:, :, begin:end] = values
        return self._keys[:, :, :end], self._values[:, :, :end]

    def _grow(self, like: Tensor, used: int) -> None:
        documents, heads, new, channels = like.shape
        capacity = max(2 * (used + new), (INTERVAL + 1) * self.beam_mask.beam)
        for name in ("_keys", "_values"):
            old = getattr(self, name)
            buffer = like.new_empty(documents, heads, capacity, channels)
            if old is not None:
                buffer[:, :, :used] = old[:, :, :used]
            setattr(self, name, buffer)

    def select(self, documents: Tensor) -> None:
        """Keeps the (D',) old documents; documents may be repeated or dropped."""
        if self._keys is not None and self._values is not None:
            self._keys = self._keys.index_select(0, documents)
            self._values = self._values.index_select(0, documents)

    def move(self, documents: Tensor, slots: Tensor) -> None:
        """Copies slots together, with room for the next ones.

        Args:
            documents: (D',) old document of each new one.
            slots: (D', L') its slots to keep.
        """
        if self._keys is None or self._values is None:
            return
        _, heads, capacity, channels = self._keys.shape
        room = (INTERVAL + 1) * self.beam_mask.beam
        slots = torch.cat([slots, slots.new_zeros(len(slots), room)], dim=1)
        # D' x H x L' rows of E channels, as rows of the flat (D H capacity) x E buffer
        head = documents[:, None] * heads + torch.arange(heads, device=slots.device)
        rows = (head[:, :, None] * capacity + slots[:, None, :]).flatten()
        shape = (len(slots), heads, slots.size(1), channels)
        self._keys = self._keys.view(-1, channels).index_select(0, rows).view(shape)
        self._values = self._values.view(-1, channels).index_select(0, rows).view(shape)


class StaticCache:
    """Keys and values of a fixed memory, one row per document, shared by the documents' query rows."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None  # (D, H, S, E)
        self.values: Tensor | None = None

    def select(self, documents: Tensor) -> None:
        """Keeps the (D',) old documents; documents may be repeated or dropped."""
        if self.keys is not None and self.values is not None:
            self.keys = self.keys.index_select(0, documents)
            self.values = self.values.index_select(0, documents)


class DecoderLayerCache:
    """What one hierarchical decoder layer keeps between steps."""

    def __init__(self, beam_mask: BeamCacheMask) -> None:
        self.self_attn = GrowingCache(beam_mask)
        self.encoder_attn = StaticCache()
        self.sentence_attn = StaticCache()


class DecoderCache:
    """What a decoder keeps between steps: its layers' caches and the beam_mask of the hypotheses, which they share.

    Args:
        rows: hypotheses R.
        documents: D, a divisor of R; the hypotheses of a document are consecutive rows.
        layers: number of layers.
        device: where keys and values will be.
    Raises:
        ValueError: the rows cannot be divided by the documents.
    """

    def __init__(self, rows: int, documents: int, layers: int, device: torch.device) -> None:
        if documents < 1 or rows % documents:
            raise ValueError(f"{rows} query rows cannot share {documents} memory rows")
        self.beam_mask = BeamCacheMask(documents, rows // documents, device)
        self.layers = [DecoderLayerCache(self.beam_mask) for _ in range(layers)]

    def append_slots(self, new: int) -> None:
        """Makes room for `new` tokens of every hypothesis; to be called before the layers run."""
        kept = self.beam_mask.drop_dead_slots()
        if kept is not None:
            for layer in self.layers:
                layer.self_attn.move(torch.arange(len(kept), device=kept.device), kept)
        self.beam_mask.append_slots(new)

    def reorder(self, order: Tensor) -> None:
        """Row i goes on from the old row `order[i]`: any order; nothing is copied where no document moves."""
        beam, documents = self.beam_mask.beam, self.beam_mask.documents
        chosen = documents_in_order(order, beam)
        if chosen is None:
            self._separate(order)
            return
        stay = is_identity(chosen, documents)
        self.reorder_beams(None if stay else chosen, (order % beam).view(-1, beam))

    def reorder_beams(self, documents: Tensor | None, parents: Tensor) -> None:
        """As `BeamCacheMask.reorder`: what a beam search does, without looking at the numbers."""
        self.beam_mask.reorder(documents, parents)
        if documents is not None:
            for layer in self.layers:
                for cache in (layer.self_attn, layer.encoder_attn, layer.sentence_attn):
                    cache.select(documents)

    def _separate(self, order: Tensor) -> None:
        documents = order // self.beam_mask.beam
        slots = self.beam_mask.separate()[order]
        everything = torch.zeros_like(order)[:, None]
        self.beam_mask.reorder(order, everything)
        for layer in self.layers:
            layer.self_attn.move(documents, slots)
            layer.encoder_attn.select(documents)
            layer.sentence_attn.select(documents)
