"""`Look`: the attention of a model between units of one document, and the effect of leaving a unit out (occlusion).

A unit of the source is a sentence, a segment or a block. Attention weights say where information may have come from,
not how it was used. Occlusion says what a prediction depends on.

Legend: L layers, H heads, Q queries, S units of the source, R rows of predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

UNIFORM = 0.9  # share of the source, from which a head is practically uniform
NAMED, VISIBLE = 3, 0.01  # units that a statement names, and the least change, in nats, that is shown


@dataclass(frozen=True)
class AttentionMap:
    """The weights of one kind of attention in all its layers.

    Attributes:
        name: for example "attention to sentences".
        queries: "target tokens", "target sentences", "source" (the units themselves) or "document" (one query).
        layers: the numbers of the layers, from 0.
        weights: (L, H, Q, S) in fp32 on the CPU; rows sum to 1.
        to_tokens: a weight is the sum over the tokens of a unit: a head without preference weighs units by length.
    """

    name: str
    queries: str
    layers: tuple[int, ...]
    weights: Tensor
    to_tokens: bool = False

    def with_summaries(self) -> tuple[list[str], list[str], Tensor]:
        """Returns names of layers and heads, and (L + 1, H + 2, Q, S) weights.

        The last layer, "all", is the mean of the layers. The last two heads are "mean" and "max"; in the layer "all"
        "max" is the maximum over layers and heads. Rows of "max" do not sum to 1.
        """
        means, most = self.weights.mean(dim=1, keepdim=True), self.weights.amax(dim=1, keepdim=True)
        each = torch.cat([self.weights, means, most], dim=1)
        every = torch.cat([each[:, :-1].mean(dim=0), most.amax(dim=0)])
        heads = [*map(str, range(self.weights.size(1))), "mean", "max"]
        return [*map(str, self.layers), "all"], heads, torch.cat([each, every[None]])


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

    @property
    def is_uniform(self) -> bool:
        """Returns whether no unit changes a row by `VISIBLE` nats."""
        return bool((self.change.abs() < VISIBLE).all())

    def with_whole(self) -> Occlusion:
        """Returns the same with the whole output as the first row, if there are several rows."""
        if len(self.rows) == 1:
            return self
        before, change = (torch.cat([each.sum(dim=0, keepdim=True), each]) for each in (self.before, self.change))
        return Occlusion(("The whole output", *self.rows), before, change)


@dataclass(frozen=True)
class Look:
    """One document and what a model looks at in it.

    Attributes:
        document: its id.
        model: name of the model, for the reader.
        unit: what a unit of the source is called: "sentence", "segment" or "block".
        source: the texts of the S units.
        lengths: their numbers of tokens.
        maps: the kinds of attention that the model has.
        target: the texts of the target tokens with the space before them; empty for encoders.
        target_sentences: first and one past the last target token of each target sentence.
        occlusion: if it was asked for.
        roles: those of the units, such as the speaker; empty if the model reads none.
        note: one line about the document, for the reader.
        prediction: one line about the label that the model gives the document; empty if it gives none.
    """

    document: str
    model: str
    unit: str
    source: tuple[str, ...]
    lengths: tuple[int, ...]
    maps: tuple[AttentionMap, ...]
    target: tuple[str, ...] = ()
    target_sentences: tuple[tuple[int, int], ...] = ()
    occlusion: Occlusion | None = None
    roles: tuple[str, ...] = ()
    note: str = ""
    prediction: str = ""

    def __post_init__(self) -> None:
        shown = {one.name: one.weights for one in self.maps} | (
            {"occlusion": self.occlusion.change} if self.occlusion else {}
        )
        if broken := [name for name, values in shown.items() if not bool(values.isfinite().all())]:
            raise ValueError(f"document {self.document}: {broken[0]} has values that are not finite")

    @property
    def is_empty(self) -> bool:
        """Returns whether it has neither attention nor occlusion to show."""
        return not self.maps and self.occlusion is None

    def with_occlusion(self, rows: Sequence[str], before: Tensor, change: Tensor) -> Look:
        """Returns the same with `Occlusion(rows, before, change)`."""
        return replace(self, occlusion=Occlusion(tuple(rows), before, change))

    @property
    def sentences(self) -> list[str]:
        """Returns the texts of the target sentences."""
        return ["".join(self.target[a:b]).strip() for a, b in self.target_sentences]

    @cached_property
    def by_sentence(self) -> tuple[AttentionMap, ...]:
        """Returns the maps.

        The queries of those of target tokens are sentences, with the mean weights of their tokens.
        """

        def mean(one: AttentionMap) -> AttentionMap:
            if one.queries != "target tokens":
                return one
            rows = [one.weights[:, :, a:b].mean(dim=2) for a, b in self.target_sentences]
            return replace(one, queries="target sentences", weights=torch.stack(rows, dim=2))

        return tuple(map(mean, self.maps))

    def used(self, one: AttentionMap, weights: Tensor) -> Tensor:
        """Maps (..., S) weights -> (...) share of the source that they use: exp(-KL(weights || uniform)), 1 if uniform.

        Uniform weights, those of a head without preference, are alike, or those to tokens by the lengths of the units.
        """
        sizes = torch.tensor(self.lengths if one.to_tokens else [1] * len(self.source)).float()
        shares = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)
        return torch.special.xlogy(shares, sizes / sizes.sum() / shares.clamp(min=1e-30)).sum(dim=-1).exp()

    def is_uniform(self, one: AttentionMap) -> bool:
        """Returns whether all heads are practically uniform."""
        return bool((self.used(one, one.weights).mean(dim=-1) >= UNIFORM).all())

    def statements(self) -> list[str]:
        """Says the prediction, what leaving out a unit changes, and how selective each kind of attention is."""
        first = [self.prediction] if self.prediction else []
        first += [] if self.occlusion is None else [self._of_occlusion(self.occlusion.with_whole())]
        return first + [self.statement(one) for one in self.by_sentence if len(self.source) > 1]

    def statement(self, one: AttentionMap) -> str:
        """Says how selective an attention is, which has its target sentences as queries."""
        name = one.name[0].upper() + one.name[1:]
        if len(self.source) == 1:
            return f"The document has one {self.unit} only, which has all of the {one.name}."
        if self.is_uniform(one):
            reason = f"no {self.unit} is preferred" if one.to_tokens else "the hierarchy is not used here"
            return f"{name} is practically uniform: {reason}."
        used = self.used(one, one.weights).mean(dim=-1)  # L x H
        layer, head = divmod(int(used.argmin()), used.size(1))
        uniform, least = int((used >= UNIFORM).sum()), f"{100 * float(used.min()):.0f} %"
        return (
            f"{name}: {uniform} of {used.numel()} heads are practically uniform. The most selective one is head {head} "
            f"of layer {one.layers[layer]}: it uses {least} of the source."
        )

    def _of_occlusion(self, whole: Occlusion) -> str:
        if whole.is_uniform:
            what = "a sentence of the output" if self.target else whole.rows[0]
            return (
                f"Occlusion is practically uniform: leaving out a {self.unit} changes the log-probability of {what} by "
                f"less than {VISIBLE} nats."
            )
        change, output = whole.change[0], "the output" if self.target or len(whole.rows) > 1 else whole.rows[0]
        order, hurting = change.argsort().tolist(), int((change >= VISIBLE).sum())
        helping = [unit for unit in order[:NAMED] if change[unit] <= -VISIBLE]
        text = f"No {self.unit} helps by {VISIBLE} nats."
        if helping:
            shares = [f"{100 * float(share):.0f} %" for share in change[helping] / change.clamp(max=0).sum()]
            text = (
                f"Without {self.unit} {helping[0] + 1} the log-probability of {output}, {float(whole.before[0]):.2f} "
                f"nats, falls by {-float(change[helping[0]]):.2f}: this {self.unit} carries {shares[0]} of all help."
            )
            others = [f"{unit + 1} ({share})" for unit, share in zip(helping[1:], shares[1:], strict=True)]
            text += f" Then come {' and '.join(others)}." if others else ""
        worst = f" {self.unit.capitalize()} {order[-1] + 1} hurts most: without it"
        rise = f"{worst} the log-probability rises by {float(change.max()):.2f}."
        return f"{text} {hurting} of {len(self.source)} {self.unit}s hurt.{rise if hurting else ''}"
