"""Heads of an encoder: the masked-LM head, and classification heads for states or pooled segments.

Liu et al. 2019, Chalkidis et al. 2022; layers and parameter names are fairseq's, so the heads of its checkpoints load.
Poolings of segments: Chalkidis et al. 2022, section 4: `max`, `attentive` (a learned weight for each segment, softmax
over the segments), `first` and `last`; Liu et al. 2022, section 3.2: `mean` and `min`. Paragraphs: the mean of the
states of their tokens, and the mean of these means for a row (Zhang et al. 2021, section 3.2). O(N C) for N segments,
`attentive` O(N C^2); O(T C) for paragraphs, no loop over the batch.

Legend: B rows (documents), T tokens, N segments or paragraphs of the row with most, V vocabulary, C channels, K
classes.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import ACTIVATIONS, GATED
from .batch_layout import safe_padding_mask

HEAD_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, **ACTIVATIONS}
# The granularity of a classification head's input. `paragraph`: each paragraph; `paragraphs`: their mean; `pair`: two
# documents.
LEVELS = ("document", "segment", "token", "paragraph", "paragraphs", "pair")  # `EvidenceHead` has a level of its own
DOCUMENT_POOLINGS = ("max", "attentive", "first", "last", "mean", "min")


class MaskedLMHead(nn.Module):
    """Logits of the vocabulary: dense, activation, layer norm, and projection with a bias.

    `table`: (V, C) token embeddings to use as projection; None: the projection has its own weight.
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
        self.activation = (ACTIVATIONS | GATED)[activation]  # of a gate the activation alone
        self.dense = nn.Linear(embed_dim, embed_dim)
        self.layer_norm = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.weight = nn.Linear(embed_dim, num_tokens, bias=False).weight if table is None else table
        self.bias = nn.Parameter(torch.zeros(num_tokens))

    def resize(self, size: int) -> None:
        """Gives the bias `size` places, new ones with 0; the weight is resized with the table that it is."""
        bias = self.bias.new_zeros(size)
        bias[: len(self.bias)] = self.bias.detach()[:size]
        self.bias = nn.Parameter(bias)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., C) states -> (..., V) logits."""
        return F.linear(self.layer_norm(self.activation(self.dense(x))), self.weight, self.bias)


class LinearMaskedLMHead(MaskedLMHead):
    """Logits of the vocabulary by one projection without bias, as EuroBERT has them; arguments as of `MaskedLMHead`."""

    def __init__(self, embed_dim: int, num_tokens: int, table: Tensor | None = None) -> None:
        nn.Module.__init__(self)
        self.weight = nn.Linear(embed_dim, num_tokens, bias=False).weight if table is None else table

    def resize(self, size: int) -> None:
        """Does nothing: the weight is resized with the table that it is."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class ClassificationHead(nn.Module):
    """Logits of classes for each state: dropout, dense, activation, dropout, projection.

    Args:
        num_classes: K; 1 for ranking or regression.
        input_dropout: before the dense layer; RoBERTa has `dropout` here, Chalkidis et al. none.
        level: one of `LEVELS`; the model passes these states to `forward`.
        activation: one of `HEAD_ACTIVATIONS`.
    """

    def __init__(
        self,
        embed_dim: int,
        inner_dim: int,
        num_classes: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        level: str = "document",
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        if level == "evidence":
            raise ValueError("a head about evidence needs the network hat_units (--arch hat_units_minilm)")
        if level not in LEVELS:
            raise ValueError(f"a classification head of {level!r}: choose one of {', '.join(LEVELS)}")
        self.level = level
        self.activation = HEAD_ACTIVATIONS[activation]
        self.input_dropout = nn.Dropout(input_dropout)
        self.dense = nn.Linear(embed_dim, inner_dim)
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(inner_dim, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (..., C) states -> (..., K) logits."""
        return self.out_proj(self.dropout(self.activation(self.dense(self.input_dropout(x)))))


class PairClassificationHead(ClassificationHead):
    """Logits of classes for pairs of documents: dense, activation, dense of half the width, activation, projection.

    The head of Long Range Arena's dual encoder (Tay et al. 2021), which has ReLU. Its input is the two states [e1; e2],
    with dropout.
    """

    def __init__(
        self, embed_dim: int, inner_dim: int, num_classes: int, dropout: float = 0.0, activation: str = "tanh"
    ) -> None:
        super().__init__(
            2 * embed_dim, inner_dim, num_classes, input_dropout=dropout, level="pair", activation=activation
        )
        self.dense_2 = nn.Linear(inner_dim, inner_dim // 2)
        self.out_proj = nn.Linear(inner_dim // 2, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Maps (2B, C) states, those of a pair in consecutive rows -> (B, K) logits."""
        pairs = x.reshape(len(x) // 2, -1)
        hidden = self.activation(self.dense(self.input_dropout(pairs)))
        return self.out_proj(self.activation(self.dense_2(hidden)))


def pool(pooling: str, segments: Tensor, padding_mask: Tensor, scores: Tensor | None = None) -> Tensor:
    """Pools (B, N, C) states to (B, C) by one of `DOCUMENT_POOLINGS`, `attentive` with (B, N) scores of the segments.

    `padding_mask`: (B, N), True = no such segment; every row has a segment.
    """
    if pooling == "max":
        return segments.masked_fill(padding_mask.unsqueeze(-1), float("-inf")).amax(dim=1)
    if pooling == "min":
        return segments.masked_fill(padding_mask.unsqueeze(-1), float("inf")).amin(dim=1)
    if pooling == "first":
        return segments[:, 0]
    if pooling == "last":
        last = (~padding_mask).cumsum(dim=1).argmax(dim=1)
        return segments[torch.arange(len(segments), device=segments.device), last]
    scores = segments.new_zeros(padding_mask.shape) if scores is None else scores  # mean: equal scores
    weights = scores.masked_fill(padding_mask, float("-inf")).softmax(dim=1)
    return (weights.unsqueeze(-1) * segments).sum(dim=1)


class PooledClassificationHead(ClassificationHead):
    """Logits of the classes of a document, from its pooled segments.

    `pooling`: one of `DOCUMENT_POOLINGS`; `attentive` has parameters. `pool_padded`: also pool the segments beyond a
    document's end.
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
        assert pooling in DOCUMENT_POOLINGS
        self.pools_by, self.pool_padded = pooling, pool_padded
        self.pooling = nn.ModuleDict()
        if pooling == "attentive":
            self.pooling["projection"] = nn.Linear(embed_dim, embed_dim)
            self.pooling["score"] = nn.Linear(embed_dim, 1, bias=False)

    def pool(self, segments: Tensor, padding_mask: Tensor) -> Tensor:
        """Maps (B, N, C) segment states and their (B, N) padding mask -> (B, C)."""
        mask = torch.zeros_like(padding_mask) if self.pool_padded else safe_padding_mask(padding_mask)
        scores = None
        if self.pools_by == "attentive":
            scores = torch.tanh(self.pooling["score"](self.pooling["projection"](segments))).squeeze(-1)
        return pool(self.pools_by, segments, mask, scores)


def paragraphs_of_tokens(tokens: Tensor, starts: Tensor, bos: int, eos: int, pad: int) -> tuple[Tensor, Tensor]:
    """Finds the paragraph of each of the (B, T) tokens, whose `starts` are True where a sentence or segment starts.

    A row is `<s> question </s> </s> <s> paragraph 1 <s> paragraph 2 </s>`, padded on either side. A paragraph is the
    tokens after a marker `<s>` in the last part of the row. Tokens of earlier parts, markers and separators belong to
    no paragraph.

    Returns:
        (B, T) number of each token's paragraph, from 0; -1 for tokens in no paragraph. (B,) paragraphs of each row: at
        least one, which may be empty; 0 in a row of padding.
    """
    is_end = tokens.eq(eos)
    parts = is_end.sum(dim=1, keepdim=True)
    in_last = ((is_end.cumsum(dim=1) - is_end.long()) == (parts - 1).clamp(min=0)) & tokens.ne(pad)
    begins = in_last & ~F.pad(in_last[:, :-1], (1, 0))  # also without a marker
    paragraphs = (in_last & (starts | begins)).cumsum(dim=1)
    inside = in_last & ~is_end & tokens.ne(bos)
    return (paragraphs - 1).masked_fill(~inside, -1), paragraphs[:, -1]
