"""Records the attention of an encoder while it reads, for the units of the text.

Legend: B documents, T tokens, S units, H heads, Q queries, K keys, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..modules.batch_layout import BatchLayout
from .look import AttentionMap
from .shown import ShownAttention, shown_attentions, units


class Recorder:
    """Records forward passes over one document, unpadded, inside a `with` block.

        with Recorder(encoder, tokens) as recorder:
            encoder(tokens)
        recorder.maps()

    Args:
        encoder: an `Encoder`, in evaluation mode.
        tokens: (1, T) token ids.
        first_token: the first token is read for the document; record it as the query "document", too.
    """

    def __init__(self, encoder: Any, tokens: Tensor, first_token: bool = False) -> None:
        self.unit, self.rows = units(encoder, tokens)
        self.numbers = self.rows[0].cpu()  # (T,)
        self.num_units = int(self.numbers.max()) + 1
        self._shown: list[ShownAttention] = shown_attentions(encoder)
        self._first_token = first_token
        self._weights: dict[tuple[str, str, bool], dict[int, Tensor]] = {}  # see `AttentionMap`
        self._handles: list[Any] = []

    def __enter__(self) -> Recorder:
        for shown in self._shown:
            for layer, module in shown.layers.items():
                self._handles.append(module.register_forward_hook(self._record(shown, layer)))
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of tokens of each unit."""
        return tuple(self.numbers[self.numbers >= 0].bincount().tolist())

    def first_of_units(self, values: Sequence[str]) -> tuple[str, ...]:
        """Of the values of all tokens, such as roles, that of the first token of each unit."""
        firsts = dict(reversed([*zip(self.numbers.tolist(), values, strict=False)]))
        return tuple(firsts[unit] for unit in range(self.num_units))

    def maps(self) -> list[AttentionMap]:
        """The recorded weights; rows sum to the weight on tokens that belong to a unit."""
        return [
            AttentionMap(name, queries, tuple(layers), torch.stack(list(layers.values())), to_tokens)
            for (name, queries, to_tokens), layers in self._weights.items()
        ]

    def _record(self, shown: ShownAttention, layer: int) -> Any:
        def hook(module: Any, inputs: tuple[Tensor, Any], output: Any) -> None:
            (weights,) = module.weights(*inputs).float().cpu()  # H x Q x K
            if to_tokens := shown.keys == "cells":
                middle = module.middle_tokens(weights.size(-1)).clamp(max=len(self.numbers) - 1)
                weights = summed(weights, self.numbers[middle], self.num_units)
            if shown.queries == "tokens":
                if self._first_token:
                    name = f"{shown.name}, from the first token"
                    self._weights.setdefault((name, "document", to_tokens), {})[layer] = weights[:, :1]
                weights = averaged(weights, self.numbers, self.num_units)
            self._weights.setdefault((shown.name, "source", to_tokens), {})[layer] = weights

        return hook


class BatchRecorder(Recorder):
    """Records one number for each segment (or sentence) of each document in a batch that is padded on the right.

    The weights say where information may have come from, not how it was used: values, residual connections and later
    layers decide that. Tokens of `hat_roberta` also attend to each other directly, which these numbers leave out. They
    depend neither on padding nor on the other documents.

    Args:
        model: an `EncoderWithHeads`, in evaluation mode.
        tokens: (B, T) token ids.
        shown: what `segment_attentions` returned.
    """

    def __init__(self, model: Any, tokens: Tensor, shown: Sequence[ShownAttention]) -> None:
        super().__init__(model.core, tokens, model.reads_first_token)
        self._shown = list(shown)
        if not shown:
            self.rows = torch.zeros_like(tokens)  # the document is one segment
        self._pooling = [head.pooling for head in model.classification_heads.values() if hasattr(head, "pooling")]
        self._means: list[Tensor] = []
        self.share: Tensor | None = None  # (B, S) of max pooling, see `max_pooling_share`

    def __enter__(self) -> BatchRecorder:
        for pooling in self._pooling:
            if pooling.pooling == "max":
                self._handles.append(pooling.register_forward_hook(self._record_share))
        super().__enter__()
        return self

    @property
    def attention(self) -> Tensor | None:
        """(B, S) means over layers, heads and queries, 0 for padding; None if no layer attends to segments.

        The queries are all segments, or the first token alone where it is read for the document.
        """
        return torch.stack(self._means).mean(dim=0) if self._means else None

    def _record(self, shown: ShownAttention, layer: int) -> Any:
        def hook(module: Any, inputs: tuple[Tensor, BatchLayout], output: Any) -> None:
            x, layout = inputs
            mean = module.weights(x, layout, self._first_token).float().mean(dim=1)  # B x Q x S
            if layout.padding is None or self._first_token:
                self._means.append(mean.mean(dim=1))
            else:
                queries = (~layout.padding).to(mean).unsqueeze(-1)
                self._means.append((mean * queries).sum(dim=1) / queries.sum(dim=1))

        return hook

    def _record_share(self, module: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        self.share = max_pooling_share(*inputs)


def segment_attentions(encoder: Any, layer: int | None = None) -> list[ShownAttention]:
    """The attentions to segments or sentences that together are the text, in all layers or in one.

    Raises:
        ValueError: the layer has none.
    """
    shown = [each for each in shown_attentions(encoder) if each.keys == "units" and each.covers]
    if layer is None:
        return shown
    if not any(layer in each.layers for each in shown):
        there = ", ".join(str(number) for each in shown for number in each.layers) or "none"
        raise ValueError(f"layer {layer} does not attend between segments (the layers that do: {there})")
    return [replace(each, layers={layer: each.layers[layer]}) for each in shown if layer in each.layers]


def max_pooling_share(segments: Tensor, padding_mask: Tensor) -> Tensor:
    """(B, N, C) states and their (B, N) padding mask -> (B, N): share of the channels that `max` takes from a segment.

    Of equal maxima the first one counts.
    """
    winner = segments.masked_fill(padding_mask.unsqueeze(-1), float("-inf")).argmax(dim=1)  # B x C
    won = winner.new_zeros(padding_mask.shape).scatter_add(1, winner, torch.ones_like(winner))
    return won / winner.size(1)


def summed(weights: Tensor, numbers: Tensor, num_units: int) -> Tensor:
    """(..., K) weights and the (K,) unit of each key -> (..., S) sums; keys of the unit -1 are left out."""
    of_unit = torch.nn.functional.one_hot(numbers + 1, num_units + 1)[:, 1:]
    return weights @ of_unit.to(weights)


def averaged(weights: Tensor, numbers: Tensor, num_units: int) -> Tensor:
    """(H, T, S) weights and the (T,) unit of each query -> (H, S, S) means over the tokens of a unit."""
    of_unit = torch.nn.functional.one_hot(numbers + 1, num_units + 1)[:, 1:].T.to(weights)
    return of_unit @ weights / of_unit.sum(dim=1, keepdim=True).clamp(min=1)
