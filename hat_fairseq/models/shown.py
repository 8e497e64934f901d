"""What analysis may look at: the attentions of an encoder whose weights can be shown, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ShownAttention:
    """One kind of attention.

    Attributes:
        name: for readers.
        layers: by number of the layer, from 0, modules that are called with (x, layout) and have
            `weights(x, layout)`: (B, H, Q, K) attention weights of this call, rows sum to 1.
        queries: what Q counts, "units" (see `Encoder.units`) or "tokens".
        keys: what K counts, "units" or "cells"; the tokens of cells are those of `middle_tokens` of the module.
        covers: each token of a text belongs to a unit.
    """

    name: str
    layers: Mapping[int, Any]
    queries: str = "units"
    keys: str = "units"
    covers: bool = True
