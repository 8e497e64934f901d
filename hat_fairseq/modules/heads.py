"""What sits on top of an encoder: the masked-LM head, and classification of states or of pooled segments.

Liu et al. 2019, Chalkidis et al. 2022; layers and parameter names are fairseq's, so the heads of its checkpoints load.

Legend: B documents, N segments, V vocabulary, C channels, K classes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import ACTIVATIONS
from .attention import safe_padding_mask
from .segment_pooling import SegmentPooling

# What a classification head can be about; `paragraph`: the mean of its tokens, `paragraphs`: the mean of all of them.
OF = ("document", "segment", "token", "paragraph", "paragraphs")


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
    """Scores of classes, from each state by itself: dropout, dense, tanh, dropout, projection.

    Args:
        embed_dim: channels C.
        inner_dim: channels between the two layers.
        num_classes: K; 1 for a score of ranking or regression.
        dropout: before the projection.
        input_dropout: before the dense layer; RoBERTa has the same there, Chalkidis et al. none.
        of: what the states stand for, one of `OF`. The model that owns the head gives it these states.
    Raises:
        ValueError: other `of`.
    """

    def __init__(
        self,
        embed_dim: int,
        inner_dim: int,
        num_classes: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        of: str = "document",
    ) -> None:
        super().__init__()
        if of not in OF:
            raise ValueError(f"a classification head of {of!r}: choose one of {', '.join(OF)}")
        self.of = of
        self.input_dropout = nn.Dropout(input_dropout)
        self.dense = nn.Linear(embed_dim, inner_dim)
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(inner_dim, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) states -> (..., K) logits."""
        return self.out_proj(self.dropout(torch.tanh(self.dense(self.input_dropout(x)))))


class PooledClassificationHead(ClassificationHead):
    """Scores of a document's classes, from its pooled segments.

    Args:
        pooling: of `SegmentPooling`.
        embed_dim, inner_dim, num_classes, dropout: of `ClassificationHead`.
        pool_padded: also pool the segments beyond a document's end.
    """

    def __init__(
        self,
        pooling: str,
        embed_dim: int,
        inner_dim: int,
        num_classes: int,
        dropout: float = 0.0,
        pool_padded: bool = False,
    ) -> None:
        super().__init__(embed_dim, inner_dim, num_classes, dropout)
        self.pooling = SegmentPooling(pooling, embed_dim)
        self.pool_padded = pool_padded

    def pooled(self, segments: Tensor, padding_mask: Tensor) -> Tensor:
        """(B, N, C) segment states and their (B, N) padding mask -> (B, C)."""
        mask = torch.zeros_like(padding_mask) if self.pool_padded else safe_padding_mask(padding_mask)
        return self.pooling(segments, mask)
