"""Keys and values kept between the steps of incremental decoding.

- `GrowingCache` (decoder self-attention): every step appends tokens. A written slot never moves when hypotheses are
  reordered (see `beam_cache_mask.py`); the buffer doubles when it is full.
- `StaticCache` (cross-attention): projected once, one row per document. The hypotheses of a document are consecutive
  query rows and read the same keys, so a beam of K takes the memory of one hypothesis.

Legend: R rows (D x K), D documents, K beam, H heads, N heads of keys, L slots, S source positions, E channels
per head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from .beam_cache_mask import INTERVAL, BeamCacheMask


class GrowingCache:
    """Keys and values of the tokens generated so far, for one self-attention.

    Args:
        beam_mask: shared by all layers of a decoder; its `append_slots` is called before the layers append.
    """

    def __init__(self, beam_mask: BeamCacheMask) -> None:
        self.beam_mask = beam_mask
        self._keys: Tensor | None = None  # (D, H, capacity, E)
        self._values: Tensor | None = None

    @property
    def allowed(self) -> Tensor | None:
        """The mask of the newest tokens, as `kernels.attend` takes it."""
        return self.beam_mask.allowed

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Writes (D, H, K x n, E) keys and values to the newest slots; returns all (D, H, L, E), views of buffers."""
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

    def keep_slots(self, slots: Tensor) -> None:
        """Keeps the (D, L') old slots, in this order, with room for the next ones."""
        if self._keys is None or self._values is None:
            return
        documents, heads, capacity, channels = self._keys.shape
        slots = F.pad(slots, (0, (INTERVAL + 1) * self.beam_mask.beam))
        # D x H x L' rows of E channels, as rows of the flat (D H capacity) x E buffer
        first_row = torch.arange(documents * heads, device=slots.device).view(documents, heads, 1) * capacity
        rows = (first_row + slots[:, None]).flatten()
        shape = (documents, heads, slots.size(1), channels)
        self._keys = self._keys.view(-1, channels).index_select(0, rows).view(shape)
        self._values = self._values.view(-1, channels).index_select(0, rows).view(shape)


class StaticCache:
    """Keys and values of a fixed memory, one row per document, shared by the query rows of the document."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None  # (D, N, S, E)
        self.values: Tensor | None = None

    def select(self, documents: Tensor) -> None:
        """Keeps the (D',) old documents; documents may be repeated or dropped."""
        if self.keys is not None and self.values is not None:
            self.keys = self.keys.index_select(0, documents)
            self.values = self.values.index_select(0, documents)


class DecoderLayerCache:
    """The caches of a hierarchical decoder layer."""

    def __init__(self, beam_mask: BeamCacheMask) -> None:
        self.self_attn = GrowingCache(beam_mask)
        self.encoder_attn = StaticCache()
        self.sentence_attn = StaticCache()


class DecoderCache:
    """The caches of a decoder's layers, and the mask over the cached tokens, which the layers share.

    Args:
        rows: hypotheses R.
        documents: D, a divisor of R; the hypotheses of a document are consecutive rows.
        layers: number of layers.
        device: of keys and values.
    Raises:
        ValueError: R is not a multiple of D.
    """

    def __init__(self, rows: int, documents: int, layers: int, device: torch.device) -> None:
        if documents < 1 or rows % documents:
            raise ValueError(f"{rows} rows of queries are not a multiple of {documents} rows of keys")
        self.beam_mask = BeamCacheMask(documents, rows // documents, device)
        self.layers = [DecoderLayerCache(self.beam_mask) for _ in range(layers)]

    def append_slots(self, new: int, dtype: torch.dtype = torch.float32) -> None:
        """Makes room for `new` tokens of every hypothesis. The decoder calls it before its layers run."""
        slots = self.beam_mask.drop_dead_slots()
        if slots is not None:
            for layer in self.layers:
                layer.self_attn.keep_slots(slots)
        self.beam_mask.append_slots(new, dtype)

    def reorder(self, documents: Tensor | None, parents: Tensor) -> None:
        """As `BeamCacheMask.reorder`. Copies no key if all documents stay. No host-device synchronisation."""
        self.beam_mask.reorder(documents, parents)
        if documents is not None:
            for layer in self.layers:
                for cache in (layer.self_attn, layer.encoder_attn, layer.sentence_attn):
                    cache.select(documents)
