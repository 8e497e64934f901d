"""`Look`: the attention of a model between units of one document, and the effect of leaving a unit out (occlusion).

A unit of the source is a sentence, a segment or a block. Attention weights say where information may have come from,
not how it was used. Occlusion says what a prediction depends on.

Legend: L layers, H heads, Q queries, S units of the source, R rows of predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

QUERIES = ("target tokens", "target sentences", "source", "document")


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one kind of attention in all its layers.

    Attributes:
        name: for example "attention to sentences".
        queries: one of `QUERIES`; "source": the units of the source themselves; "document": one query.
        layers: the numbers of the layers, from 0.
        weights: (L, H, Q, S) in fp32 on the CPU; rows sum to 1.
    """

    name: str
    queries: str
    layers: tuple[int, ...]
    weights: Tensor

    def with_summaries(self) -> tuple[list[str], list[str], Tensor]:
        """Names of layers and heads, and (L + 1, H + 2, Q, S) weights.

        The last layer, "all", is the mean of the layers. The last two heads are "mean" and "max"; in the layer "all"
        "max" is the maximum over layers and heads. Rows of "max" do not sum to 1.
        """
        means, most = self.weights.mean(dim=1, keepdim=True), self.weights.amax(dim=1, keepdim=True)
        each = torch.cat([self.weights, means, most], dim=1)
        every = torch.cat([each[:, :-1].mean(dim=0), most.amax(dim=0)])
        layers = [*map(str, self.layers), "all"]
        heads = [*(str(head) for head in range(self.weights.size(1))), "mean", "max"]
        return layers, heads, torch.cat([each, every[None]])


@dataclass(frozen=True)
class Occlusion:
    """Sentence occlusion: the effect of leaving out one unit of the source.

    Attributes:
        rows: what is predicted: the target sentences, or the label.
        before: (R,) their log-probabilities, in nats, from the whole source.
        change: (R, S) log-probability without the unit minus that from the whole source; negative: the unit helps.
    """

    rows: tuple[str, ...]
    before: Tensor
    change: Tensor


@dataclass(frozen=True)
class Look:
    """One document and what a model looks at in it.

    Attributes:
        document: its id.
        model: name of the model, for the reader.
        unit: what a unit of the source is called: "sentence", "segment" or "block".
        source: the texts of the S units.
        target: the texts of the target tokens with the space before them, if any; empty for encoders.
        target_sentences: first and one past the last target token of each target sentence.
        maps: the kinds of attention that the model has.
        occlusion: if it was asked for.
        note: one line about the document, for example how much of it was truncated; empty if there is none.
    """

    document: str
    model: str
    unit: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    target_sentences: tuple[tuple[int, int], ...]
    maps: tuple[AttentionMap, ...]
    occlusion: Occlusion | None = None
    note: str = ""

    @property
    def sentences(self) -> list[str]:
        """The texts of the target sentences."""
        return ["".join(self.target[a:b]).strip() for a, b in self.target_sentences]

    @cached_property
    def by_sentence(self) -> tuple[AttentionMap, ...]:
        """The maps of target tokens with the mean of each target sentence's tokens as a query."""
        return tuple(
            AttentionMap(
                one.name,
                "target sentences",
                one.layers,
                torch.stack([one.weights[:, :, a:b].mean(dim=2) for a, b in self.target_sentences], dim=2),
            )
            for one in self.maps
            if one.queries == "target tokens" and self.target_sentences
        )
