"""Representative tokens: an additional token before each block of tokens, and full attention among these tokens.

Liu et al. 2022 (ERNIE-Sparse), section 3.2 (HST). The first g tokens of a document are global. The other tokens form
blocks of w, and a representative token is inserted before each block (equation 1): m = ceil((n - g) / w) in a document
of n tokens. A layer is an encoder layer with sparse attention over the longer sequence (equation 2). Then the
representatives attend to each other, and the outputs replace their states (equation 3), in O(m^2). A document of at
most g tokens has no representatives, and the layer has no effect besides the encoder layer's.

Legend: B documents, T tokens, T' = T + S slots, S representatives of the longest document, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import HeadProjections
from .batch_layout import Arranged, BatchLayout, Representatives, Slots, on_representatives
from .layers import EncoderLayer, LayerSizes

WEIGHTS = ("shared", "separate")
UPDATES = ("replace", "residual")


@dataclass(frozen=True)
class RepresentativeSlots:
    """The slots of tokens and representatives in the longer sequence, which are equal for all documents.

    Attributes:
        num_global: g, tokens before the first representative.
        block: w, tokens behind each representative.
    """

    num_global: int
    block: int

    def count(self, length: int) -> int:
        """Returns S for documents of up to `length` tokens."""
        return -(-max(length - self.num_global, 0) // self.block)

    def tokens(self, length: int, device: torch.device) -> Tensor:
        """Returns (T,) slot of each token."""
        numbers = torch.arange(length, device=device)
        behind = (numbers - self.num_global).div(self.block, rounding_mode="floor") + 1
        return numbers + behind.clamp(min=0)

    def representatives(self, length: int, device: torch.device) -> Tensor:
        """Returns (S,) slot of each representative."""
        return self.num_global + torch.arange(self.count(length), device=device) * (self.block + 1)

    def insert(self, batch: Arranged, representative: int, pad: int, own_positions: bool = False) -> Arranged:
        """Inserts representatives into the batch; `representative` is their token id.

        A document without any gets slot 0 as one; `on_representatives` does not change its state.

        Args:
            own_positions: a representative has a position of its own in the sequence, not that of its block's first
                token.
        """
        tokens, layout, device = batch.tokens, batch.layout, batch.tokens.device
        (rows, length), padding = tokens.shape, tokens.eq(pad)
        slots, size = self.tokens(length, device), length + self.count(length)
        heads = self.representatives(length, device)
        places = heads.expand(rows, -1)
        empty = padding[:, self.num_global :: self.block]  # the first token of each block
        assert empty.shape == places.shape
        ids = tokens.new_full((rows, size), pad).index_copy(1, slots, tokens)
        ids = ids.scatter(1, places, torch.where(empty, pad, representative))
        absent: dict[str, Tensor] = {}
        if layout.padding is not None or not self.count(length):
            if not self.count(length):
                places, empty = places.new_zeros(rows, 1), empty.new_ones(rows, 1)
            places, absent = places.masked_fill(empty, 0), {"padding": empty, "exists": ~empty}
        # The slots of the tokens of the input, whose padding may have been moved.
        if layout.slots is None:
            moved = torch.arange(length, device=device).expand(rows, -1).masked_fill(padding, length)
        else:
            moved = layout.slots.numbers
        positions = torch.arange(size, device=device)
        if not own_positions:
            positions[slots] = torch.arange(length, device=device)
            positions[heads] = torch.arange(self.num_global, max(length, self.num_global), self.block, device=device)
        inserted = BatchLayout(
            padding=None if layout.padding is None else ids.eq(pad),
            representatives=Representatives(places, **absent, unit="block", inserted=True),
            slots=Slots(F.pad(slots, (0, 1), value=size)[moved], size),
            empty_rows=layout.empty_rows,
            row_lengths=None if layout.row_lengths is None else tuple(n + self.count(n) for n in layout.row_lengths),
        )
        return Arranged(ids, (positions + pad + 1).masked_fill(ids.eq(pad), pad), inserted)


class RepresentativeLayer(EncoderLayer):
    """An encoder layer, followed by attention among the representatives.

    Args:
        representative_attn: full attention with projections of its own; None: that with the self-attention's.
        update: `replace`: the output of the attention is the new state (equation 3). `residual`: it is added to the
            state, with a layer norm, as in other sub-layers.
    """

    def __init__(
        self, sizes: LayerSizes, self_attn: nn.Module, representative_attn: nn.Module | None, update: str
    ) -> None:
        super().__init__(sizes, self_attn)
        assert update in UPDATES
        self.representative_attn = representative_attn
        self.representative_attn_layer_norm = self.norm() if update == "residual" else None

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T', C) -> (B, T', C)."""
        x = super().forward(x, layout)
        assert layout.representatives is not None
        inner = layout.of_representatives
        return on_representatives(x, layout.representatives, lambda states: self._attend(states, inner))

    def weights(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Returns (B, H, S, S) weights of the attention among representatives in `forward`."""
        assert layout.representatives is not None
        states = layout.representatives.gather(super().forward(x, layout))
        if self.representative_attn_layer_norm is not None and self.sizes.normalize_before:
            states = self.representative_attn_layer_norm(states)
        return self.full_attention.row_weights(states, layout.of_representatives.key_mask(states))

    @property
    def full_attention(self) -> HeadProjections:
        """Returns the projections of the attention among representatives."""
        attention = self.self_attn if self.representative_attn is None else self.representative_attn
        assert isinstance(attention, HeadProjections)
        return attention

    def _attend(self, states: Tensor, layout: BatchLayout) -> Tensor:
        def attend(h: Tensor) -> Tensor:
            return self.full_attention.attend_rows(h, layout.key_mask(h))

        if self.representative_attn_layer_norm is None:
            return attend(states).to(states.dtype)  # autocast changes the type
        return self.residual(states, self.representative_attn_layer_norm, attend)
