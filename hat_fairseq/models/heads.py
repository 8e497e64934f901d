"""What stands on an encoder: the masked-LM head, and classification of a document from its segments.

Parameters carry the names that fairseq's RoBERTa gives them.

Legend: B documents, T tokens, M masked tokens, N segments, C channels, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..modules.attention import safe_padding_mask
from ..modules.segment_pooling import SegmentPooling
from ..modules.transformer_layer import LayerSizes


class MaskedLMHead(nn.Module):
    """Dense, GELU, layer norm, then the scores of all tokens with the (tied) embedding table `weight`."""

    def __init__(self, sizes: LayerSizes, weight: Tensor) -> None:
        super().__init__()
        self.dense = nn.Linear(sizes.embed_dim, sizes.embed_dim)
        self.layer_norm = sizes.layer_norm()
        self.weight = weight
        self.bias = nn.Parameter(torch.zeros(len(weight)))

    def forward(self, features: Tensor, masked_tokens: Tensor | None = None) -> Tensor:
        """(B, T, C) -> (B, T, V), or (M, V) of the tokens where `masked_tokens` (B, T) is True."""
        if masked_tokens is not None:
            features = features[masked_tokens]
        return F.linear(self.layer_norm(F.gelu(self.dense(features))), self.weight, self.bias)


class SegmentClassificationHead(nn.Module):
    """Pooled segments, dense, tanh, dropout, classes.

    Args:
        pooling, input_dim: of `SegmentPooling`.
        inner_dim, num_classes: outputs of the two linear layers.
        pool_padded: also pool the segments beyond a document's end.
    """

    def __init__(
        self,
        pooling: str,
        input_dim: int,
        inner_dim: int,
        num_classes: int,
        dropout: float = 0.0,
        pool_padded: bool = False,
    ) -> None:
        super().__init__()
        self.pooling = SegmentPooling(pooling, input_dim)
        self.dense = nn.Linear(input_dim, inner_dim)
        self.out_proj = nn.Linear(inner_dim, num_classes)
        self.dropout, self.pool_padded = dropout, pool_padded

    def forward(self, segments: Tensor, padding_mask: Tensor) -> Tensor:
        """(B, N, C) segment states and their (B, N) padding mask -> (B, num_classes), or (B, N, num_classes)."""
        mask = torch.zeros_like(padding_mask) if self.pool_padded else safe_padding_mask(padding_mask)
        x = torch.tanh(self.dense(self.pooling(segments, mask)))
        return self.out_proj(F.dropout(x, self.dropout, self.training))
