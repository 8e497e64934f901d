"""Representative tokens: an additional token before each block of tokens, and full attention among these tokens.

Liu et al. 2022 (ERNIE-Sparse), section 3.2 (HST). The first g tokens of a document are global. The other tokens form
blocks of w, and a representative token is inserted before each block (equation 1): m = ceil((n - g) / w) in a document
of n tokens. A layer is an encoder layer with sparse attention over the longer sequence (equation 2). Then the
representatives attend to each other, and the outputs replace their states (equation 3), in O(m^2). A document of at
most g tokens has no representatives, and the layer has no effect besides the encoder layer's.

Legend: B documents, T tokens, T' = T + S slots, S representatives of the longest document, C channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import HeadProjections
from .batch_layout import Arranged, BatchLayout, Representatives, Slots, on_representatives
from .embedding import position_rows
from .layers import EncoderLayer, LayerSizes

WEIGHTS = ("shared", "separate")
UPDATES = ("replace", "residual")


def insert_representatives(
    batch: Arranged, num_global: int, block: int, representative: int, pad: int, own_positions: bool = False
) -> Arranged:
    """Inserts a representative before each block of tokens after the global ones.

    Args:
        num_global, block: g and w.
        representative: its token id.
        own_positions: a representative has a position of its own in the sequence, not that of its block's first token.
    """
    tokens, layout, lengths = batch.tokens, batch.layout, batch.layout.row_lengths
    documents, length = tokens.shape
    number = count_blocks(length, num_global, block)
    size = length + number

    def insert(x: Tensor, firsts: Tensor) -> Tensor:
        """Maps (B, T) values of tokens and (B, S) values of representatives -> (B, T')."""
        blocks = F.pad(x[:, num_global:], (0, number * block - x[:, num_global:].size(1)), value=pad)
        blocks = torch.cat([firsts.unsqueeze(2), blocks.unflatten(1, (number, block))], dim=2)
        return torch.cat([x[:, :num_global], blocks.flatten(1)], dim=1)[:, :size]

    empty = tokens[:, num_global::block].eq(pad)  # the first token of each block
    ids = insert(tokens, torch.where(empty, pad, representative))
    positions = position_rows(ids, pad) if own_positions else insert(batch.rows, batch.rows[:, num_global::block])
    places = num_global + torch.arange(number, device=tokens.device) * (block + 1)
    places = places.expand(documents, -1).masked_fill(empty, size)
    if not number:
        places, empty = tokens.new_full((documents, 1), size), empty.new_ones(documents, 1)
    slots = layout.slots_of(tokens)
    earlier = (slots - num_global).div(block, rounding_mode="floor") + 1  # representatives before the token
    inserted = BatchLayout(
        padding=None if layout.padding is None else ids.eq(pad),
        representatives=Representatives(
            places, None if layout.padding is None and number else empty, unit="block", inserted=True
        ),
        slots=Slots((slots + earlier.clamp(min=0)).masked_fill(slots == length, size), size),
        empty_rows=layout.empty_rows,
        row_lengths=lengths and tuple(n + count_blocks(n, num_global, block) for n in lengths),
    )
    return Arranged(ids, positions, inserted)


def count_blocks(length: int, num_global: int, block: int) -> int:
    """Returns m for n tokens."""
    return -(-max(length - num_global, 0) // block)


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
        self.representative_attn_layer_norm = sizes.norm() if update == "residual" else None

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:  # type: ignore[override]  # it has no `reach`
        """Maps (B, T', C) -> (B, T', C)."""
        return on_representatives(super().forward(x, layout), layout, self._attend, layout.among_representatives)

    def weights(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Returns (B, H, S, S) weights of the attention among representatives in `forward`."""
        assert layout.representatives is not None
        states = layout.representatives.gather(super().forward(x, layout))
        if self.representative_attn_layer_norm is not None and self.sizes.normalize_before:
            states = self.representative_attn_layer_norm(states)
        mask = layout.among_representatives.key_mask(states)
        return self.full_attention.row_weights(states, mask, without_positions(states))

    @property
    def full_attention(self) -> HeadProjections:
        """Returns the projections of the attention among representatives."""
        attention = self.self_attn if self.representative_attn is None else self.representative_attn
        assert isinstance(attention, HeadProjections)
        return attention

    def _attend(self, states: Tensor, layout: BatchLayout) -> Tensor:
        attend, among = self.full_attention.attend_rows, (layout.key_mask(states), without_positions(states))
        if self.representative_attn_layer_norm is None:
            return attend(states, *among).to(states.dtype)  # autocast changes the type
        return self.residual(states, self.representative_attn_layer_norm, attend, *among)


def without_positions(states: Tensor) -> Tensor:
    """Returns (B, S) positions, all 0: rotary positions turn no representative, as the paper says of no position."""
    return states.new_zeros(states.shape[:2])
