"""`ShownAttention`: the attentions of an encoder whose weights `hat look` can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ShownAttention:
    """One kind of attention, such as that among sentences.

    Attributes:
        name: for the page.
        layers: number of the layer, from 0, to its module. The module is called with (x, layout), and its
            `weights(x, layout)` gives the (B, H, Q, K) attention weights of this call, whose rows sum to 1.
        queries: what the Q queries are: "units" (see `Encoder.units`) or "tokens".
        keys: what the K keys are: "units", or "cells", whose tokens the module's `middle_tokens` gives.
        covers: whether each token of a text belongs to a unit.
    """

    name: str
    layers: Mapping[int, Any]
    queries: str = "units"
    keys: str = "units"
    covers: bool = True
