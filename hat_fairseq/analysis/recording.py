"""Records the attention of an encoder while it reads one document, summed over the tokens of each unit of its text.

Legend: T tokens, S units, H heads, Q queries, K keys.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..models.shown import ShownAttention
from .look import AttentionMap


class Recorder:
    """Records forward passes over one document, unpadded, inside a `with` block.

        with Recorder(encoder, tokens) as recorder:
            encoder(tokens)
        recorder.maps()

    Args:
        encoder: an `Encoder`, or what has its `units` and `shown_attentions`; in evaluation mode.
        tokens: (1, T) token ids.
        first_token: the first token is read for the document; record it as the query "document", too.
    """

    def __init__(self, encoder: Any, tokens: Tensor, first_token: bool = False) -> None:
        self.unit, numbers = encoder.units(tokens)
        self.numbers = numbers[0].cpu()  # (T,)
        self.num_units = int(self.numbers.max()) + 1
        self._shown: list[ShownAttention] = encoder.shown_attentions()
        self._first_token = first_token
        self._found: dict[tuple[str, str], dict[int, Tensor]] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> Recorder:
        for shown in self._shown:
            for layer, module in shown.layers.items():
                self._handles.append(module.register_forward_hook(self._record(shown, layer)))
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()

    def maps(self) -> list[AttentionMap]:
        """What was recorded; rows sum to the weight on tokens that belong to a unit."""
        return [
            AttentionMap(name, queries, tuple(layers), torch.stack(list(layers.values())))
            for (name, queries), layers in self._found.items()
        ]

    def _record(self, shown: ShownAttention, layer: int) -> Any:
        def hook(module: Any, inputs: tuple[Tensor, Any], output: Any) -> None:
            (weights,) = module.weights(*inputs).float().cpu()  # H x Q x K
            if shown.keys == "cells":
                middle = module.middle_tokens(weights.size(-1)).clamp(max=len(self.numbers) - 1)
                weights = summed(weights, self.numbers[middle], self.num_units)
            if shown.queries == "tokens":
                if self._first_token:
                    name = f"{shown.name}, from the first token"
                    self._found.setdefault((name, "document"), {})[layer] = weights[:, :1]
                weights = averaged(weights, self.numbers, self.num_units)
            self._found.setdefault((shown.name, "source"), {})[layer] = weights

        return hook


def summed(weights: Tensor, numbers: Tensor, num_units: int) -> Tensor:
    """(..., K) weights and the (K,) unit of each key -> (..., S) sums; keys of the unit -1 are left out."""
    of_unit = torch.nn.functional.one_hot(numbers + 1, num_units + 1)[:, 1:]
    return weights @ of_unit.to(weights)


def averaged(weights: Tensor, numbers: Tensor, num_units: int) -> Tensor:
    """(H, T, S) weights and the (T,) unit of each query -> (H, S, S) means over the tokens of a unit."""
    of_unit = torch.nn.functional.one_hot(numbers + 1, num_units + 1)[:, 1:].T.to(weights)
    return of_unit @ weights / of_unit.sum(dim=1, keepdim=True).clamp(min=1)
