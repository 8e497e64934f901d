"""Heads over the units of documents: the label of a document, and the label of each unit.

The label of a document is computed from two means of its units: by the weights of gated attention, and the plain one.
Beside this network stands a logistic regression over words (`units.words`), because words and vectors know different
things. The probabilities of a document are the means of those of the two paths. A training computes the loss of the
network alone: the regression has seen the same documents and gives most of them the right label, so a loss of both
would leave the network nothing to learn.

The label of a unit is computed from its vector by a linear map, and by layers that read its neighbours and the
document, whose part is 0 when a training begins. Beside it stands a regression over the words of the unit and of its
neighbours, in the same way.

Legend: B documents, N units of the document with most, T tokens, E channels of the vectors, K classes.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .gated_attention import GatedAttention
from .layers import SCALE, UnitLayers, UnitSizes, reset_parts
from .words import UnitWords, Words

CHANNELS = 64  # of the gate, and of the hidden layer after the pooling


class HeadOverUnits(nn.Module):
    """A network over the vectors of units, and beside it a regression over words.

    Args:
        num_classes: K; 1 for a number.
        sizes: of the layers over units, which may be none.
        words: the linear path; None: there is none.
    """

    level: str
    own_init = True  # whatever `init` of the model says

    def __init__(self, vector_dim: int, sizes: UnitSizes, words: nn.Module | None) -> None:
        super().__init__()
        self.units = UnitLayers(vector_dim, sizes) if sizes.letters else None
        self.dropout, self.words = nn.Dropout(sizes.vector_dropout), words

    def reset_parameters(self) -> None:
        """Initialises everything as the constructor does."""
        reset_parts(self)

    def forward(self, vectors: Tensor, padding: Tensor, tokens: Tensor) -> Tensor:
        """Computes (B, K) or (B, N, K) logits; in evaluation, with words, logarithms of means of both probabilities.

        Args:
            vectors, padding: (B, N, E) of the units, and the mask, in which no row is all True.
            tokens: (B, T) ids.
        """
        logits = self.network(vectors, padding)
        if self.words is None or self.training or not self.words.has_weights:
            return logits
        return mean_of_probabilities(logits.float(), self.words(tokens)).to(logits)

    def network(self, vectors: Tensor, padding: Tensor) -> Tensor:
        """Computes the logits of the network alone."""
        raise NotImplementedError


class DocumentHead(HeadOverUnits):
    """Logits of the classes of documents; a single class has no words."""

    level = "document"

    def __init__(self, vector_dim: int, num_classes: int, sizes: UnitSizes, words: bool = True) -> None:
        super().__init__(vector_dim, sizes, Words(num_classes) if words and num_classes > 1 else None)
        width = sizes.dim if sizes.letters else vector_dim
        self.attention = GatedAttention(width, CHANNELS)
        self.dense, self.out_proj = nn.Linear(2 * width, CHANNELS), nn.Linear(CHANNELS, num_classes)

    def network(self, vectors: Tensor, padding: Tensor) -> Tensor:
        """Computes the (B, K) logits of the network alone."""
        x = self.states(vectors, padding)
        mean = x.masked_fill(padding.unsqueeze(2), 0).sum(dim=1) / (~padding).sum(dim=1, keepdim=True)
        pooled = torch.cat([self.attention(x, padding), mean.to(x)], dim=1)
        return self.out_proj(F.relu(self.dense(self.dropout(pooled))))

    def states(self, vectors: Tensor, padding: Tensor) -> Tensor:
        """Computes the states that are pooled: the vectors, or what the layers make of them."""
        x = self.dropout(vectors.to(self.dense.weight)) * SCALE
        return x if self.units is None else self.units(x, padding)

    def unit_weights(self, vectors: Tensor, padding: Tensor) -> Tensor:
        """Returns the (B, N) weights of the gated attention, which say what decides."""
        return self.attention.weights(self.states(vectors, padding), padding)[:, 0, 0]


def mean_of_probabilities(first: Tensor, second: Tensor) -> Tensor:
    """Maps two (..., K) logits -> the logarithms of the means of their probabilities."""
    return torch.logaddexp(first.log_softmax(dim=-1), second.log_softmax(dim=-1)) - math.log(2)


class UnitHead(HeadOverUnits):
    """Logits of the classes of units."""

    level = "segment"

    def __init__(self, vector_dim: int, num_classes: int, sizes: UnitSizes, words: bool = True) -> None:
        linear = nn.Linear(vector_dim, num_classes)  # drawn first, so that a seed gives the same head
        super().__init__(vector_dim, sizes, UnitWords(num_classes) if words and num_classes > 1 else None)
        self.linear = linear
        self.out_proj = nn.Linear(sizes.dim, num_classes) if sizes.letters else None
        self._begin_with_equal_classes()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._begin_with_equal_classes()

    def _begin_with_equal_classes(self) -> None:
        for linear in filter(None, (self.linear, self.out_proj)):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)

    def network(self, vectors: Tensor, padding: Tensor) -> Tensor:
        """Computes the (B, N, K) logits of the network alone."""
        x = self.dropout(vectors.to(self.linear.weight)) * SCALE
        logits = self.linear(x)
        if self.units is None or self.out_proj is None:
            return logits
        return logits + self.out_proj(self.units(x, padding))
