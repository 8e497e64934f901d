"""What sits on top of an encoder: the masked-LM head, and classification from one state or from segments.

Liu et al. 2019, Chalkidis et al. 2022; layers and parameter names are fairseq's, so the heads of its checkpoints load.

Legend: B documents, N segments, V vocabulary, C channels, K classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import safe_padding_mask
from .segment_pooling import SegmentPooling
from .transformer_layer import ACTIVATIONS


class MaskedLMHead(nn.Module):
    """Scores of all words: dense, activation, layer norm, and the token table (or one of its own) with a bias.

    Args:
        embed_dim: channels C.
        table: (V, C) the token table to share, or None for one of its own.
        num_tokens: V.
        activation: of the dense layer.
        layer_norm_eps: of the layer norm.
    """

    def __init__(
        self,
        embed_dim: int,
        num_tokens: int,
        activation: str,
        table: Tensor | None = None,
        layer_norm_eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.layer_norm = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.weight = nn.Linear(embed_dim, num_tokens, bias=False).weight if table is None else table
        self.bias = nn.Parameter(torch.zeros(num_tokens))

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) states -> (..., V) logits."""
        return F.linear(self.layer_norm(self.activation(self.dense(x))), self.weight, self.bias)


class ClassificationHead(nn.Module):
    """Scores of classes from one state a document: dropout, dense, tanh, dropout, projection.

    Args:
        embed_dim: channels C.
        inner_dim: channels between the two layers.
        num_classes: K; 1 for a score of ranking or regression.
        dropout: before each of the two layers.
    """

    def __init__(self, embed_dim: int, inner_dim: int, num_classes: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.dense = nn.Linear(embed_dim, inner_dim)
        self.out_proj = nn.Linear(inner_dim, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C) states -> (B, K) logits."""
        hidden = self.dense(F.dropout(x, self.dropout, self.training)).tanh()
        return self.out_proj(F.dropout(hidden, self.dropout, self.training))


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
        """(B, N, C) segment states and their (B, N) padding mask -> (B, K), or (B, N, K)."""
        mask = torch.zeros_like(padding_mask) if self.pool_padded else safe_padding_mask(padding_mask)
        x = torch.tanh(self.dense(self.pooling(segments, mask)))
        return self.out_proj(F.dropout(x, self.dropout, self.training))
