"""Heads of an encoder: the masked-LM head, and classification heads for states or pooled segments.

Liu et al. 2019, Chalkidis et al. 2022; layers and parameter names are fairseq's, so the heads of its checkpoints load.

Legend: B documents, N segments, V vocabulary, C channels, K classes.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import ACTIVATIONS
from .attention import safe_padding_mask
from .segment_pooling import SegmentPooling

HEAD_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, **ACTIVATIONS}
# What the states that a classification head reads represent. `paragraph`: each paragraph (the mean of its tokens);
# `paragraphs`: the mean of all paragraphs; `pair`: two documents.
OF = ("document", "segment", "token", "paragraph", "paragraphs", "pair")


class MaskedLMHead(nn.Module):
    """Logits of the vocabulary: dense, activation, layer norm, and projection with a bias.

    Args:
        embed_dim: channels C.
        num_tokens: V.
        table: (V, C) token embeddings to use as projection; None: the projection has its own weight.
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
    """Logits of classes for each state: dropout, dense, activation, dropout, projection.

    Args:
        embed_dim: channels C.
        inner_dim: channels between the two layers.
        num_classes: K; 1 for ranking or regression.
        dropout: before the projection.
        input_dropout: before the dense layer; RoBERTa uses the rate of `dropout` here, Chalkidis et al. none.
        of: what the states represent, one of `OF`. The model passes these states to `forward`.
        activation: after the dense layer, one of `HEAD_ACTIVATIONS`.
    Raises:
        ValueError: unknown `of`.
    """

    def __init__(
        self,
        embed_dim: int,
        inner_dim: int,
        num_classes: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        of: str = "document",
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        if of not in OF:
            raise ValueError(f"a classification head of {of!r}: choose one of {', '.join(OF)}")
        self.of = of
        self.activation = HEAD_ACTIVATIONS[activation]
        self.input_dropout = nn.Dropout(input_dropout)
        self.dense = nn.Linear(embed_dim, inner_dim)
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(inner_dim, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) states -> (..., K) logits."""
        return self.out_proj(self.dropout(self.activation(self.dense(self.input_dropout(x)))))


class PairClassificationHead(ClassificationHead):
    """Logits of classes for pairs of documents: dense, activation, dense of half the width, activation, projection.

    The head of Long Range Arena's dual encoder (Tay et al. 2021), which has ReLU. Its input is the two states [e1; e2].

    Args:
        embed_dim, inner_dim, num_classes, dropout, activation: of `ClassificationHead`; the dropout is on its input.
    """

    def __init__(
        self, embed_dim: int, inner_dim: int, num_classes: int, dropout: float = 0.0, activation: str = "tanh"
    ) -> None:
        super().__init__(2 * embed_dim, inner_dim, num_classes, input_dropout=dropout, of="pair", activation=activation)
        self.dense_2 = nn.Linear(inner_dim, inner_dim // 2)
        self.out_proj = nn.Linear(inner_dim // 2, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(2B, C) states, those of a pair in consecutive rows -> (B, K) logits."""
        pairs = x.reshape(len(x) // 2, -1)
        hidden = self.activation(self.dense(self.input_dropout(pairs)))
        return self.out_proj(self.activation(self.dense_2(hidden)))


class PooledClassificationHead(ClassificationHead):
    """Logits of the classes of a document, from its pooled segments.

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
