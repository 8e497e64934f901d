"""Caches whose tensors keep their shapes and addresses between steps, for CUDA graphs and torch.compile.

The buffers of keys and values have a fixed number of slots. A tensor says to which slots a step writes. The step
attends to all slots under a mask that excludes unused ones. Buffers are replaced only when they are full, or when
documents leave the batch; `version` counts these replacements.

Legend: D documents, K beam, H heads, L slots in use, S slots of a buffer, E channels per head.
"""

import torch
from torch import Tensor

from ..kernels import prepare_mask
from .beam_cache_mask import BeamCacheMask
from .cache import DecoderCache, GrowingCache

SMALLEST = 128  # slots of the first buffer; a full buffer is replaced by one of twice the size


class FixedMask:
    """The slots to which the newest tokens are written, and the mask of the slots they attend to.

    Args:
        beam_mask: the table of ancestors, updated before each step.
    Attributes:
        slots: S.
        places: (K,) slots of the newest tokens.
        allowed: (D, 1, K, S) mask as `kernels.attend` takes it.
        version: how often the tensors were replaced.
    """

    def __init__(self, beam_mask: BeamCacheMask) -> None:
        self.beam_mask = beam_mask
        self.slots, self.version = 0, 0
        device = beam_mask.descends.device
        self.places = torch.zeros(beam_mask.beam, dtype=torch.int64, device=device)
        self.allowed = prepare_mask(torch.zeros(0, 1, beam_mask.beam, 0, dtype=torch.bool, device=device), torch.float)

    def update(self, dtype: torch.dtype) -> None:
        """After `beam_mask.append_slots(1, dtype)`."""
        documents, beam, used = self.beam_mask.descends.shape
        if used > self.slots or documents != len(self.allowed):
            self.slots = max(SMALLEST, self.slots)
            while self.slots < used:
                self.slots *= 2
            nothing = torch.zeros(documents, 1, beam, self.slots, dtype=torch.bool, device=self.places.device)
            self.allowed = prepare_mask(nothing, dtype)
            self.version += 1
        newest, is_bool = self.beam_mask.allowed, self.allowed.dtype is torch.bool
        self.allowed[..., :used] = (True if is_bool else 0.0) if newest is None else newest
        self.allowed[..., used:] = False if is_bool else float("-inf")
        torch.arange(used - beam, used, out=self.places)


class FixedCache(GrowingCache):
    """`GrowingCache` in buffers of `mask.slots` slots, for one token of each hypothesis at a time."""

    def __init__(self, mask: FixedMask) -> None:
        super().__init__(mask.beam_mask)
        self.mask = mask

    @property
    def allowed(self) -> Tensor:
        return self.mask.allowed

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Writes (D, H, K, E) keys and values; returns (D, H, S, E) buffers."""
        if self._keys is None or self._values is None:
            # zeros, because the weight 0 of a masked slot times NaN would be NaN
            shape = (*keys.shape[:2], self.mask.slots, keys.size(3))
            self._keys, self._values = keys.new_zeros(shape), values.new_zeros(shape)
        self._keys.index_copy_(2, self.mask.places, keys)
        self._values.index_copy_(2, self.mask.places, values)
        return self._keys, self._values

    def reserve(self) -> None:
        """Makes the buffers as long as the mask. Called outside of the recorded step."""
        for name in ("_keys", "_values"):
            old = getattr(self, name)
            if old is not None and old.size(2) < self.mask.slots:
                buffer = old.new_zeros(*old.shape[:2], self.mask.slots, old.size(3))
                buffer[:, :, : old.size(2)] = old
                setattr(self, name, buffer)

    def keep_slots(self, slots: Tensor) -> None:
        """Moves the (D, L') old slots to the front, in this order."""
        if self._keys is None or self._values is None:
            return
        places = slots[:, None, :, None].expand(-1, self._keys.size(1), -1, self._keys.size(3))
        for buffer in (self._keys, self._values):
            buffer[:, :, : slots.size(1)] = buffer.gather(2, places)


class FixedDecoderCache(DecoderCache):
    """`DecoderCache` of layers with `FixedCache`; the first step fills the caches of the cross-attentions.

    Attributes:
        fixed_mask: shared by all layers.
    """

    def __init__(self, rows: int, documents: int, layers: int, device: torch.device) -> None:
        super().__init__(rows, documents, layers, device)
        self.fixed_mask = FixedMask(self.beam_mask)
        self._growing = [FixedCache(self.fixed_mask) for _ in self.layers]
        for layer, cache in zip(self.layers, self._growing, strict=True):
            layer.self_attn = cache

    def append_slots(self, new: int, dtype: torch.dtype = torch.float32) -> None:
        """Makes room for the next token of every hypothesis.

        Raises:
            ValueError: more than one token of each.
        """
        if new != 1:
            raise ValueError(f"{new} tokens of each hypothesis in a step; a decoding step of fixed shape takes one")
        super().append_slots(new, dtype)
        self.fixed_mask.update(dtype)
        for cache in self._growing:
            cache.reserve()
