"""Layers over the units of documents, their turns or sentences: what all heads over units have in common.

N reads the neighbours of a unit, D all units of the document, as the segment-wise and the cross-segment layers of
Chalkidis et al. 2022, section 3; but neighbours are a sliding window, so that a label does not depend on where the
document begins.

Legend: B documents, N units of the document with most, E channels of the vectors, C channels of the layers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..modules.attention import FullAttention
from ..modules.batch_layout import BatchLayout
from ..modules.embedding import sines_and_cosines
from ..modules.layers import EncoderLayer, LayerSizes
from ..modules.sliding_window import SlidingWindowAttention

LAYERS = ("N", "D")
NONE = "none"  # the layout without layers
SCALE = 8.0  # of the channels of a vector of length 1 with some hundred of them


@dataclass(frozen=True)
class UnitSizes:
    """Numbers of the layers over turns or sentences; ValueError for other letters than those of `LAYERS`.

    `neighbours`: units on either side that a layer N reads.
    """

    layout: str = "N|D"
    neighbours: int = 12
    dim: int = 32
    ffn_dim: int = 64
    attention_heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if wrong := [letter for letter in self.letters if letter not in LAYERS]:
            form = f"write N or D with | between, or {NONE}"
            raise ValueError(f"the layers over units are {self.layout!r}: {wrong[0]!r} is none; {form}")

    @property
    def letters(self) -> list[str]:
        """Returns the letter of each layer."""
        return [] if self.layout == NONE else self.layout.split("|")

    @property
    def vector_dropout(self) -> float:
        """Returns the dropout of the vectors, which have many channels."""
        return min(1.0, 2 * self.dropout)


def layers_over_units(sizes: UnitSizes) -> nn.ModuleList:
    """Builds the layers, which are pre-norm."""
    layer_sizes = LayerSizes(
        sizes.dim, sizes.ffn_dim, sizes.attention_heads, sizes.dropout, activation="gelu", normalize_before=True
    )
    return nn.ModuleList(
        EncoderLayer(
            layer_sizes,
            SlidingWindowAttention(layer_sizes.attention_sizes, sizes.neighbours)
            if letter == "N"
            else FullAttention(layer_sizes.attention_sizes),
        )
        for letter in sizes.letters
    )


def places_of_units(counts: Tensor, most: int) -> Tensor:
    """Maps (B,) numbers of units -> (B, N, 3): the share of the document before a unit, its square, and the length."""
    share = torch.arange(most, device=counts.device) / (counts - 1).clamp(min=1).unsqueeze(1)
    return torch.stack([share, share.square(), (counts / 500).unsqueeze(1).expand_as(share)], dim=2)


def reset_parts(head: nn.Module) -> None:
    """Initialises everything in a head as the constructors do: each part by itself, parts before what they are in."""
    for module in [*head.modules()][:0:-1]:
        if callable(reset := getattr(module, "reset_parameters", None)):
            reset()


class UnitLayers(nn.Module):
    """States of units from their vectors and places, after the layers."""

    def __init__(self, vector_dim: int, sizes: UnitSizes) -> None:
        super().__init__()
        self.unit_proj, self.place_proj = nn.Linear(vector_dim, sizes.dim), nn.Linear(3, sizes.dim)
        self.layers, self.layer_norm = layers_over_units(sizes), nn.LayerNorm(sizes.dim)

    def forward(self, vectors: Tensor, padding: Tensor) -> Tensor:
        """Maps (B, N, E) vectors and their (B, N) padding mask, in which no row is all True -> (B, N, C)."""
        counts = (~padding).sum(dim=1)
        x = self.unit_proj(vectors) + self.place_proj(places_of_units(counts, padding.size(1)).to(vectors))
        x = x + sines_and_cosines(x.size(1), x.size(2), x.device).to(x)
        layout = BatchLayout(padding, row_lengths=tuple(counts.tolist()))
        for layer in self.layers:
            x = layer(x, layout)
        return self.layer_norm(x)
