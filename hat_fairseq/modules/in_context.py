"""Vectors in context: an encoder reads a long document in chunks that overlap, and each piece is pooled afterwards.

Günther et al. 2024, *Late Chunking*, with two changes: chunks overlap, and the states of the outer tokens are not used,
so that no token stands at the end of what the encoder reads; and a vector may be the mean of all states within so many
tokens of a piece (windowed late chunking), not of those of the piece alone. O(T) for T tokens.

Legend: T tokens of a document, N pieces, C channels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

MARGIN = 8  # a margin is this part of the tokens that the encoder reads together


class Chunk(NamedTuple):
    """Tokens `begin` to `end` of a document, which are encoded together; the states of `first` to `last` are kept."""

    begin: int
    end: int
    first: int
    last: int


def chunks_of(tokens: int, longest: int) -> Iterator[Chunk]:
    """Yields the chunks of a document: one if it has at most `longest` tokens, else as many as margins need."""
    if tokens <= longest:
        yield Chunk(0, tokens, 0, tokens)
        return
    margin = longest // MARGIN
    for first in range(0, tokens, longest - 2 * margin):
        last = min(tokens, first + longest - 2 * margin)
        yield Chunk(max(0, first - margin), min(tokens, last + margin), first, last)


def middles_of(sizes: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Returns the (N,) places of the middles of consecutive pieces of (N,) `sizes` tokens."""
    return sizes.cumsum(0).to(dtype) - sizes.to(dtype) / 2


def nearby_means(means: Tensor, sizes: Tensor, width: float) -> Tensor:
    """Averages all tokens within `width` tokens of the middle of each piece, and all tokens of the piece.

    Args:
        means: (N, C) of the states of each piece.
        sizes: (N,) tokens of the pieces; a piece at the edge of the window counts with the tokens that are inside.
    Returns:
        (N, C); zeros for a document without tokens.
    """
    ends, middles = sizes.cumsum(0).double(), middles_of(sizes, torch.float64)
    first = torch.minimum(ends - sizes, middles - width).clamp(min=0)
    last = torch.maximum(ends, middles + width).minimum(ends[-1])
    edges = F.pad(ends, (1, 0))
    sums = F.pad((means * sizes.unsqueeze(1)).double().cumsum(0), (0, 0, 1, 0))

    def until(place: Tensor) -> Tensor:
        """Sums the states of all tokens before (N,) places, with a part of the piece that a place is in."""
        index = torch.searchsorted(edges, place, right=True).clamp(1, len(sizes))
        inside = (place - edges[index - 1]) / sizes[index - 1].clamp(min=1)
        return sums[index - 1] + inside.unsqueeze(1) * (sums[index] - sums[index - 1])

    return ((until(last) - until(first)) / (last - first).clamp(min=1).unsqueeze(1)).to(means)
