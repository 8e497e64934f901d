"""Records the attention of a model in one document, by the units of its text: sentences, segments or blocks.

Legend: T tokens, S units, H heads, Q queries, K keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ..modules.batch_layout import sentence_starts
from ..modules.pooling_attention import PoolingAttention
from ..modules.representative_tokens import RepresentativeLayer
from ..modules.segments import SegmentLayer
from ..networks.encoder import Encoder
from .look import AttentionMap

Value = TypeVar("Value")

BLOCK = 64  # tokens of a block, the unit of a text without markers


class ShownAttention(NamedTuple):
    """One kind of attention, for example among sentences.

    Attributes:
        name: for the page.
        layers: number of the layer to its module. With the arguments of a call of the module, its `weights` returns the
            (1, H, Q, K) attention weights, whose rows sum to 1.
        queries: "units", "tokens" of the source, "target tokens", or "document", one query.
        keys: "units", "tokens" or "cells", whose tokens the module's `middle_tokens` gives.
    """

    name: str
    layers: dict[int, Any]
    queries: str = "units"
    keys: str = "units"


class Recorder:
    """Records forward passes over one document, unpadded, inside a `with` block.

        with Recorder(encoder, tokens) as recorder:
            encoder(tokens)
        recorder.maps()

    Args:
        encoder: an `Encoder`, in evaluation mode.
        tokens: (1, T) token ids.
        first_token: the model classifies the first token; also record its attention as the query "document".
        decoder: also record the attention of this decoder to the source.
        heads: also record the gated attention of these heads.
    """

    def __init__(
        self,
        encoder: Encoder,
        tokens: Tensor,
        first_token: bool = False,
        decoder: Any = None,
        heads: Iterable[nn.Module] = (),
    ) -> None:
        self.unit, unit_of_token = units(encoder, tokens)
        self.unit_of_token = unit_of_token.cpu()  # (T,) the unit of each token, -1 for none
        self.num_units = int(self.unit_of_token.max()) + 1
        self.is_end = (tokens[0] == encoder.vocabulary.eos).cpu()  # (T,) the tokens that are </s>
        self._shown = [*([] if decoder is None else _of_decoder(decoder, self.unit)), *_of_encoder(encoder)]
        gates = {number: each for number, each in enumerate(heads) if hasattr(each, "unit_weights")}
        self._shown.append(
            ShownAttention("gated attention", {i: each.attention for i, each in gates.items()}, "document")
        )
        self._first_token = first_token
        self._weights: dict[tuple[int, str], dict[int, Tensor]] = {}  # by number of `_shown` and queries
        self._handles: list[Any] = []

    def __enter__(self) -> Recorder:
        for number, shown in enumerate(self._shown):
            for layer, module in shown.layers.items():
                self._handles.append(module.register_forward_hook(partial(self._record, number, layer)))
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()

    @property
    def lengths(self) -> tuple[int, ...]:
        """Returns the number of tokens of each unit."""
        return tuple(self.unit_of_token[self.unit_of_token >= 0].bincount().tolist())

    def by_unit(self, values: Sequence[Value]) -> list[list[Value]]:
        """Groups by unit what belongs to all tokens: their words, roles or places."""
        grouped: list[list[Value]] = [[] for _ in range(self.num_units)]
        for value, unit in zip(values, self.unit_of_token.tolist(), strict=True):
            if unit >= 0:
                grouped[unit].append(value)
        return grouped

    def maps(self) -> list[AttentionMap]:
        """Returns the recorded weights; rows sum to the weight on tokens that belong to a unit."""
        maps = []
        for (number, queries), layers in sorted(self._weights.items(), key=lambda item: item[0]):
            shown = self._shown[number]
            name = (
                f"{shown.name}, from the first token"
                if (shown.queries, queries) == ("tokens", "document")
                else shown.name
            )
            weights = torch.stack(list(layers.values()))
            maps.append(AttentionMap(name, queries, tuple(layers), weights, shown.keys != "units"))
        return maps

    def _record(self, number: int, layer: int, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        def store(queries: str, values: Tensor) -> None:
            self._weights.setdefault((number, queries), {})[layer] = values

        shown, (weights,) = self._shown[number], module.weights(*inputs).float().cpu()  # H x Q x K
        of_tokens = self.unit_of_token
        if shown.keys == "cells":
            of_tokens = of_tokens[module.middle_tokens(weights.size(-1)).clamp(max=len(of_tokens) - 1)]
        if shown.keys != "units":
            weights = summed(weights, of_tokens, self.num_units)
        if shown.queries == "document":
            return store(shown.queries, weights)
        if shown.queries == "target tokens":
            return store(shown.queries, weights[:, :-1])  # without </s>
        if shown.queries == "tokens":
            if self._first_token:
                store("document", weights[:, :1])
            weights = averaged(weights, self.unit_of_token, self.num_units)
        store("source", weights)


def units(encoder: Encoder, tokens: Tensor) -> tuple[str, Tensor]:
    """Returns the units of a text in analysis: what representatives stand for, else sentences, else 64 tokens each.

    Args:
        tokens: (1, T) token ids.
    Returns:
        the name of a unit, and the (T,) number of the unit of each token, from 0; -1 for tokens without a unit.
    """
    layout = encoder.arrange(tokens).layout
    positions = torch.arange(tokens.size(1), device=tokens.device)
    if (where := layout.representatives) is not None:
        slots = positions if layout.slots is None else layout.slots.index[0]
        unit_of_token = torch.searchsorted(where.positions[0].contiguous(), slots.contiguous(), right=True) - 1
        if where.inserted and where.padding is not None and bool(where.padding.all()):
            unit_of_token = torch.zeros_like(unit_of_token)  # no representatives: the text is one unit
        return where.unit, unit_of_token
    starts = sentence_starts(tokens, encoder.vocabulary.bos, encoder.vocabulary.pad)[0]
    if int(starts.sum()) > 1:
        return "sentence", starts.cumsum(dim=0) - 1
    return "block", positions // BLOCK


def _of_encoder(encoder: Encoder) -> list[ShownAttention]:
    layers = dict(enumerate(encoder.layers))
    hierarchical = getattr(encoder, "hierarchical_encoder", None)
    sentences = {} if hierarchical is None else {i: layer.self_attn for i, layer in enumerate(hierarchical.layers)}
    crossing = {i: layer.cross_segment for i, layer in layers.items() if isinstance(layer, SegmentLayer)}
    segments = {i: layer.self_attn for i, layer in crossing.items() if layer is not None}
    inserted = {i: layer for i, layer in layers.items() if isinstance(layer, RepresentativeLayer)}
    to = {i: layer for i, layer in layers.items() if getattr(layer, "sentence_attn", None) is not None}
    queries = "tokens" if any(layer.queries == "tokens" for layer in to.values()) else "units"
    attentions = {i: getattr(layer, "self_attn", None) for i, layer in layers.items()}
    pooled = {i: each for i, each in attentions.items() if isinstance(each, PoolingAttention) and not inserted}
    return [
        ShownAttention("attention among sentences", sentences),
        ShownAttention("attention among segments", segments),
        ShownAttention("attention among representatives", inserted),
        ShownAttention("attention to sentences", {i: layer.sentence_attn for i, layer in to.items()}, queries),
        ShownAttention("attention to pooled tokens", pooled, "tokens", "cells"),
    ]


def _of_decoder(decoder: Any, unit: str) -> list[ShownAttention]:
    layers = dict(enumerate(decoder.layers))
    to_sentences = {i: layer.sentence_attn for i, layer in layers.items() if layer.sentence_attn is not None}
    to_tokens = {i: layer.encoder_attn for i, layer in layers.items()}
    return [
        ShownAttention("attention to sentences", to_sentences, "target tokens"),
        ShownAttention(f"attention to tokens, summed by {unit}", to_tokens, "target tokens", "tokens"),
    ]


def segment_weights(model: Any, tokens: Tensor) -> tuple[Recorder, list[dict[str, float]]]:
    """Returns for each unit of a document its `weight` and `share`, as far as the model has them, or nothing.

    The weight is the mean over layers, heads and queries: all units, or the first token alone where it is classified.
    It needs an attention to units that together are the text. The share is that of the channels that max pooling takes
    from the unit; of equal maxima the first one counts.

    Args:
        model: an `EncoderWithHeads`, in evaluation mode.
        tokens: (1, T) token ids.
    """
    with torch.no_grad(), Recorder(model.core, tokens, model.core.reads_first_token) as recorder:
        spans = model.encode(tokens).spans
    values: dict[str, Tensor] = {}
    maps = [one for one in recorder.maps() if not one.to_tokens and bool((recorder.unit_of_token >= 0).all())]
    if maps:  # that of the document comes before that of the units
        queries = maps[0].weights[:, :, :1] if model.core.reads_first_token else maps[0].weights
        values["weight"] = queries.mean(dim=(0, 1, 2))
    if any(getattr(head, "pools_by", None) == "max" for head in model.modules()):
        values["share"] = spans[0].argmax(dim=0).bincount(minlength=spans.size(1)) / spans.size(2)
    rows = zip(*(each.tolist() for each in values.values()), strict=True)
    return recorder, [dict(zip(values, row, strict=True)) for row in rows]


def summed(weights: Tensor, unit_of_token: Tensor, num_units: int) -> Tensor:
    """Maps (..., K) weights and the (K,) unit of each key -> (..., S) sums; keys of the unit -1 are left out."""
    return weights @ one_hot(unit_of_token + 1, num_units + 1)[:, 1:].to(weights)


def averaged(weights: Tensor, unit_of_token: Tensor, num_units: int) -> Tensor:
    """Maps (H, T, S) weights and the (T,) unit of each query -> (H, S, S) means over the tokens of a unit."""
    of_unit = one_hot(unit_of_token + 1, num_units + 1)[:, 1:].T.to(weights)
    return of_unit @ weights / of_unit.sum(dim=1, keepdim=True).clamp(min=1)
