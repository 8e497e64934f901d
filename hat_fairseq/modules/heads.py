"""What sits on top of an encoder: the masked-LM head and the classification head of RoBERTa.

Liu et al. 2019; layers and parameter names are fairseq's, so the heads of its checkpoints load.

Legend: N tokens, B documents, V vocabulary, C channels, K classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .transformer_layer import ACTIVATIONS


class MaskedLMHead(nn.Module):
    """Scores of all words: dense, activation, layer norm, and the token table (or one of its own) with a bias.

    Args:
        embed_dim: channels C.
        table: (V, C) the token table to share, or None for one of its own.
        num_tokens: V.
        activation: of the dense layer.
    """

    def __init__(self, embed_dim: int, num_tokens: int, activation: str, table: Tensor | None = None) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.layer_norm = nn.LayerNorm(embed_dim)
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
