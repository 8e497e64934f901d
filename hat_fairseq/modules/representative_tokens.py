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
from functools import partial

import torch
from torch import Tensor

from .attention import FullAttention
from .batch_layout import BatchLayout
from .representatives import Representatives, among
from .segments import SegmentGrid
from .transformer_layer import AttentionBuilder, EncoderLayer, LayerSizes

WEIGHTS = ("shared", "separate")
UPDATES = ("replace", "residual")


@dataclass(frozen=True)
class RepresentativeSlots:
    """The positions (slots) of tokens and representatives in the longer sequence, which are equal for all documents.

    Attributes:
        num_global: g, tokens before the first representative.
        block: w, tokens behind each representative.
    """

    num_global: int
    block: int

    def count(self, length: int) -> int:
        """S for documents of up to `length` tokens."""
        return -(-max(length - self.num_global, 0) // self.block)

    def tokens(self, length: int, device: torch.device) -> Tensor:
        """(T,) slot of each token."""
        numbers = torch.arange(length, device=device)
        behind = (numbers - self.num_global).div(self.block, rounding_mode="floor") + 1
        return numbers + behind.clamp(min=0)

    def representatives(self, length: int, device: torch.device) -> Tensor:
        """(S,) slot of each representative."""
        return self.num_global + torch.arange(self.count(length), device=device) * (self.block + 1)

    def token_numbers(self, num_slots: int, device: torch.device) -> Tensor:
        """(T',) number of the token in each slot; for a representative, that of the first token of its block."""
        slots = torch.arange(num_slots, device=device)
        local = slots - self.num_global
        block, offset = local.div(self.block + 1, rounding_mode="floor"), local % (self.block + 1)
        return torch.where(local < 0, slots, self.num_global + block * self.block + (offset - 1).clamp(min=0))

    def insert(self, tokens: Tensor, layout: BatchLayout, representative: int, pad: int) -> tuple[Tensor, BatchLayout]:
        """(B, T) token ids, padded on the right, and their layout -> (B, T') with representatives, and its layout.

        A document without representatives gets its first token as one; `among` does not change its state.
        """
        batch, length = tokens.shape
        slots = self.tokens(length, tokens.device)
        size = length + self.count(length)
        places = self.representatives(length, tokens.device).expand(batch, -1)
        padding = tokens.new_zeros(tokens.shape, dtype=torch.bool) if layout.padding is None else layout.padding
        empty = padding[:, self.num_global :: self.block]  # the first token of each block
        assert empty.shape == places.shape
        ids = tokens.new_full((batch, size), pad).index_copy(1, slots, tokens)
        ids = ids.scatter(1, places, torch.where(empty, pad, representative))
        if not places.size(1):
            places, empty = places.new_zeros(batch, 1), empty.new_ones(batch, 1)
        written = None if layout.padding is None and self.count(length) else ~empty
        positions = places if written is None else places.masked_fill(empty, 0)
        representatives = Representatives(positions, None if written is None else empty, written)
        grid = SegmentGrid(
            slots.expand(batch, -1).masked_fill(padding, size), 1, size, layout.padding is not None, False
        )
        masked = None if layout.padding is None else ids.eq(pad)
        lengths = None if layout.row_lengths is None else tuple(n + self.count(n) for n in layout.row_lengths)
        return ids, BatchLayout(
            masked, representatives, blocks=grid, order=layout.order, empty_rows=layout.empty_rows, row_lengths=lengths
        )


class RepresentativeLayer(EncoderLayer):
    """An encoder layer, followed by attention among the representatives.

    Args:
        sizes, self_attn: of `EncoderLayer`.
        weights: the representatives use the projections of the self-attention (`shared`) or their own (`separate`).
        update: `replace`: the output of the attention is the new state (equation 3). `residual`: it is added to the
            state, with a layer norm, as in other sub-layers.
    Raises:
        ValueError: unknown `weights` or `update`.
    """

    def __init__(self, sizes: LayerSizes, self_attn: AttentionBuilder, weights: str, update: str) -> None:
        super().__init__(sizes, self_attn)
        for value, choices in ((weights, WEIGHTS), (update, UPDATES)):
            if value not in choices:
                raise ValueError(f"attention among representatives: {value!r} is not one of {', '.join(choices)}")
        assert isinstance(self.self_attn, FullAttention)
        build = partial(FullAttention, inner_dim=self.self_attn.q_proj.out_features)
        self.representative_attn = self.attention(build) if weights == "separate" else None
        self.representative_attn_layer_norm = self.norm() if update == "residual" else None

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T', C) -> (B, T', C)."""
        x = super().forward(x, layout)
        assert layout.representatives is not None
        return among(x, layout.representatives, lambda states: self._attend(states, layout.among))

    def weights(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, H, S, S) weights of the attention among representatives when the layer is called with these arguments."""
        assert layout.representatives is not None
        states = layout.representatives.gather(super().forward(x, layout))
        if self.representative_attn_layer_norm is not None and self.sizes.normalize_before:
            states = self.representative_attn_layer_norm(states)
        return FullAttention.weights(self.attention_among, states, layout.among)

    @property
    def attention_among(self) -> FullAttention:
        attention = self.self_attn if self.representative_attn is None else self.representative_attn
        assert isinstance(attention, FullAttention)
        return attention

    def _attend(self, states: Tensor, layout: BatchLayout) -> Tensor:
        attention = self.attention_among
        if self.representative_attn_layer_norm is None:
            return FullAttention.forward(attention, states, layout).to(states.dtype)  # autocast changes the type
        return self.residual(
            states, self.representative_attn_layer_norm, lambda h: FullAttention.forward(attention, h, layout)
        )
