"""Attention within segments, and attention between segments.

Chalkidis et al. 2022, section 3: a segment-wise layer (S) is an encoder layer over the tokens of each segment, all
segments in one batched attention; a cross-segment layer (D) is an encoder layer over the segments' first slots, whose
outputs replace them. A layout such as `S|S|SD` says which of the two each layer has. O(T L + N^2) for T = N x L tokens.
With one segment and a layout of S alone it is a plain transformer encoder.

Legend: B documents, N segments, L slots of a segment, R rows (B x N, or B), C channels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .attention import MultiheadAttention, safe_padding_mask
from .transformer_layer import LayerSizes, TransformerEncoderLayer

LAYERS = ("S", "D", "SD")


def parse_layout(layout: str) -> list[str]:
    """`S|SD` -> ["S", "SD"].

    Raises:
        ValueError: a layer that is none of S, D and SD.
    """
    layers = layout.split("|")
    wrong = [layer for layer in layers if layer not in LAYERS]
    if wrong:
        raise ValueError(f"layout {layout!r}: unknown layer {wrong[0]!r}; write layers S, D or SD with | between them")
    return layers


def attend(attention: MultiheadAttention, x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Self-attention under any padding mask: a row of nothing but padding attends uniformly, which is always finite.

    Args:
        x: (R, L, C); padding_mask: (R, L), True = padding.
    """
    if padding_mask is None:
        return attention(x)[0]
    out = attention(x, key_padding_mask=safe_padding_mask(padding_mask))[0]
    # Equal weights on all values: the same as the value of the mean.
    uniform = attention.out_proj(attention.v_proj(x.mean(dim=1, keepdim=True)))
    return torch.where(padding_mask.all(dim=1)[:, None, None], uniform, out)


class SegmentEncoderLayer(TransformerEncoderLayer):
    """An encoder layer whose rows may be padding as a whole, as the segments beyond a document's end are."""

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """(R, L, C) -> (R, L, C); `padding_mask` (R, L), True = padding."""
        x = self.residual(x, self.self_attn_layer_norm, lambda h: attend(self.self_attn, h, padding_mask))
        return self.residual(x, self.final_layer_norm, self.feed_forward)


class HierarchicalLayer(nn.Module):
    """A segment-wise layer, a cross-segment layer, or the first and then the second.

    Args:
        sizes: the numbers of either layer.
        kind: S, D or SD.
    """

    def __init__(self, sizes: LayerSizes, kind: str) -> None:
        super().__init__()
        assert kind in LAYERS
        self.segment_wise = SegmentEncoderLayer(sizes) if "S" in kind else None
        self.cross_segment = SegmentEncoderLayer(sizes) if "D" in kind else None

    def forward(self, x: Tensor, padding_mask: Tensor | None = None, segment_positions: Tensor | None = None) -> Tensor:
        """Runs the layer.

        Args:
            x: (B, N, L, C) states.
            padding_mask: (B, N, L), True = padding; None when nothing is padded.
            segment_positions: (B, N, C), added to the segments' states before they attend to each other, or None.
        Returns:
            (B, N, L, C).
        """
        if self.segment_wise is not None:
            rows_mask = None if padding_mask is None else padding_mask.flatten(0, 1)
            x = self.segment_wise(x.flatten(0, 1), rows_mask).view_as(x)
        if self.cross_segment is not None:
            heads = x[:, :, 0] if segment_positions is None else x[:, :, 0] + segment_positions
            heads = self.cross_segment(heads, None if padding_mask is None else padding_mask.all(dim=2))
            x = torch.cat([heads.unsqueeze(2), x[:, :, 1:]], dim=2)
        return x
