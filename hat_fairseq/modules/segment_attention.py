"""Attention within segments, and the layers of the Hierarchical Attention Transformer.

Chalkidis et al. 2022, section 3. A segment-wise layer (S) is an encoder layer over the tokens of each segment. A
cross-segment layer (D) is an encoder layer over the first slots of all segments; its outputs replace their states. A
layout such as `S|S|SD` lists the layers; SD is S followed by D. O(T L + N^2) for T = N x L tokens.

Legend: B documents, N segments, L slots of a segment, T = N x L positions, C channels.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from .attention import FullAttention
from .batch_layout import BatchLayout
from .representatives import among
from .transformer_layer import AttentionBuilder, EncoderLayer, LayerSizes

LAYERS = ("S", "D", "SD")


class SegmentAttention(FullAttention):
    """Self-attention within consecutive segments of a fixed length; O(T L).

    Args:
        embed_dim, num_heads, dropout: of `HeadProjections`.
        segment_length: L.
    Raises:
        ValueError: `segment_length` below 1.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, segment_length: int = 128) -> None:
        super().__init__(embed_dim, num_heads, dropout)
        if segment_length < 1:
            raise ValueError(f"segment_length {segment_length}: it must be at least 1")
        self.segment_length = segment_length

    def allowed(self, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
        """Whether positions `query` attend to positions `key`: both are in one segment."""
        return query // self.segment_length == key // self.segment_length

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C); the last segment is shorter where T is no multiple of L."""
        batch, length, channels = x.shape
        mask = layout.key_mask(x, self.segment_length)
        # B x T x C -> (B N) x L x C
        rows = F.pad(x, (0, 0, 0, -length % self.segment_length)).reshape(-1, self.segment_length, channels)
        return self.attend_rows(rows, mask).reshape(batch, -1, channels)[:, :length]


def parse_layout(layout: str) -> list[str]:
    """`S|SD` -> ["S", "SD"].

    Raises:
        ValueError: a layer other than S, D and SD.
    """
    layers = layout.split("|")
    wrong = [layer for layer in layers if layer not in LAYERS]
    if wrong:
        raise ValueError(f"layout {layout!r}: unknown layer {wrong[0]!r}; write layers S, D or SD with | between them")
    return layers


class SegmentLayer(nn.Module):
    """A segment-wise layer, a cross-segment layer, or the first followed by the second.

    Args:
        sizes: hyperparameters of both layers.
        kind: S, D or SD.
        self_attn: builds the attention of the segment-wise layer, see `EncoderLayer`.
    """

    def __init__(self, sizes: LayerSizes, kind: str, self_attn: AttentionBuilder) -> None:
        super().__init__()
        assert kind in LAYERS
        self.segment_wise = EncoderLayer(sizes, self_attn) if "S" in kind else None
        self.cross_segment = EncoderLayer(sizes, FullAttention) if "D" in kind else None

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C); `layout.representatives` are the segments' first slots."""
        if self.segment_wise is not None:
            x = self.segment_wise(x, layout)
        if self.cross_segment is not None:
            assert layout.representatives is not None
            x = among(x, layout.representatives, lambda states: self._cross(states, layout))
        return x

    def _cross(self, states: Tensor, layout: BatchLayout) -> Tensor:
        assert self.cross_segment is not None and layout.representatives is not None
        embedding = layout.representatives.embedding
        return self.cross_segment(states if embedding is None else states + embedding, layout.among)
