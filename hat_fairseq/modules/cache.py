"""Keys and values kept between the steps of incremental decoding.

Self-attention has one row for each hypothesis, and every step appends tokens. Cross-attention has one row for each
document, projected once. The hypotheses of a document are consecutive rows of queries and read the same keys, so a beam
takes the memory of one hypothesis.

Legend: R hypotheses (D x beam), D documents, H heads, N heads of keys, L tokens so far, K keys of the source, E
channels of a head.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class KeyCache:
    """Keys and values of one attention, (R, H, L, E) or (D, N, K, E) each; None before its first step."""

    keys: Any = None
    values: Any = None

    def select(self, rows: Tensor) -> None:
        """Keeps these old rows, in this order; rows may be repeated or dropped."""
        if self.keys is not None:
            self.keys, self.values = self.keys.index_select(0, rows), self.values.index_select(0, rows)

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the (R, H, n, E) keys and values of n new tokens; returns all, (R, H, L + n, E)."""
        if self.keys is not None:
            keys, values = torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def once(self, project: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Returns the (D, N, K, E) keys and values of `project`, which only the first step calls."""
        if self.keys is None:
            self.keys, self.values = (x.contiguous() for x in project())
        return self.keys, self.values


class DecoderLayerCache(NamedTuple):
    """The caches of a decoder layer."""

    self_attn: KeyCache
    encoder_attn: KeyCache
    sentence_attn: KeyCache


class DecoderCache:
    """The caches of a decoder's layers."""

    def __init__(self, num_layers: int) -> None:
        self.layers = [DecoderLayerCache(KeyCache(), KeyCache(), KeyCache()) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """Returns L, the tokens of every hypothesis."""
        keys = self.layers[0].self_attn.keys
        return 0 if keys is None else keys.size(2)

    def reorder(self, rows: Tensor, documents: Tensor | None) -> None:
        """Continues old hypotheses.

        Args:
            rows: (R',) the old hypothesis that each new one continues.
            documents: (D',) the old document of each new one; None: all stay where they are.
        """
        for layer in self.layers:
            layer.self_attn.select(rows)
            if documents is not None:
                layer.encoder_attn.select(documents)
                layer.sentence_attn.select(documents)
