"""The units of a text, and the attentions of an encoder whose weights `hat look` can show.

Legend: B documents, T tokens, H heads, Q queries, K keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..modules.batch_layout import sentence_starts
from ..modules.pooling_attention import PoolingAttention
from ..modules.representative_tokens import RepresentativeLayer
from ..modules.segments import SegmentLayer
from ..networks.encoder import Encoder

BLOCK = 64  # tokens of a block, the unit in which a text without markers is shown


@dataclass(frozen=True)
class ShownAttention:
    """One kind of attention, such as that among sentences.

    Attributes:
        name: for the page.
        layers: number of the layer, from 0, to its module. The module is called with (x, layout), and its
            `weights(x, layout)` gives the (B, H, Q, K) attention weights of this call, whose rows sum to 1.
        queries: what the Q queries are: "units" (see `units`) or "tokens".
        keys: what the K keys are: "units", or "cells", whose tokens the module's `middle_tokens` gives.
        covers: whether each token of a text belongs to a unit.
    """

    name: str
    layers: Mapping[int, Any]
    queries: str = "units"
    keys: str = "units"
    covers: bool = True


def units(encoder: Encoder, tokens: Tensor) -> tuple[str, Tensor]:
    """The units of a text in analysis: what the representatives stand for, else sentences, else blocks of 64 tokens.

    Args:
        tokens: (B, T) token ids, padded on the right.
    Returns:
        the name of a unit, and the (B, T) number of the unit of each token, from 0; -1 for tokens without a unit.
    """
    layout = encoder.arrange(tokens).layout
    padding = tokens.eq(encoder.words.pad)
    positions = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
    if (where := layout.representatives) is not None:
        slots = positions if layout.slots is None else layout.slots.numbers
        starts = where.positions
        if where.padding is not None:
            starts = starts.masked_fill(where.padding, torch.iinfo(starts.dtype).max)
        numbers = torch.searchsorted(starts.contiguous(), slots.contiguous(), right=True) - 1
        if where.inserted and where.exists is not None and not bool(where.exists.any()):
            numbers = torch.zeros_like(numbers)  # no representatives: the text is one unit
        return where.unit, numbers.masked_fill(padding, -1)
    starts = sentence_starts(tokens, encoder.words.bos, encoder.words.pad)
    if int(starts.sum()) > len(tokens):
        return "sentence", (starts.cumsum(dim=1) - 1).masked_fill(padding, -1)
    return "block", (positions // BLOCK).masked_fill(padding, -1)


def shown_attentions(encoder: Encoder) -> list[ShownAttention]:
    """The attentions whose weights can be shown."""
    layers = dict(enumerate(encoder.layers))
    shown = []
    if (hierarchical := getattr(encoder, "hierarchical_encoder", None)) is not None:
        among = {i: layer.self_attn for i, layer in enumerate(hierarchical.layers)}
        shown.append(ShownAttention("attention among sentences", among))
    crossing = {i: layer.cross_segment for i, layer in layers.items() if isinstance(layer, SegmentLayer)}
    if among := {i: layer.self_attn for i, layer in crossing.items() if layer is not None}:
        shown.append(ShownAttention("attention among segments", among))
    if inserted := {i: layer for i, layer in layers.items() if isinstance(layer, RepresentativeLayer)}:
        shown.append(ShownAttention("attention among representatives", inserted, covers=False))
    if to := {i: layer for i, layer in layers.items() if getattr(layer, "sentence_attn", None) is not None}:
        queries = "tokens" if next(iter(to.values())).queries == "tokens" else "units"
        shown.append(
            ShownAttention("attention to sentences", {i: each.sentence_attn for i, each in to.items()}, queries)
        )
    attentions = {i: getattr(layer, "self_attn", None) for i, layer in layers.items()}
    pooled = {i: each for i, each in attentions.items() if isinstance(each, PoolingAttention)}
    if pooled and not inserted:
        shown.append(ShownAttention("attention to pooled tokens", pooled, "tokens", "cells"))
    return shown
