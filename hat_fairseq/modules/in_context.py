"""Vectors in context: an encoder reads a long document in chunks that overlap, and each piece is pooled afterwards.

Günther et al. 2024, *Late Chunking*, with two changes: a chunk has `margin` tokens more on either side, whose states
are thrown away, so that no token stands at the end of what the encoder reads; and a vector may be the mean of all
states within so many tokens of a piece (windowed late chunking), not of those of the piece alone. O(T) for T tokens.

Legend: T tokens of a document, N pieces, C channels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
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


def middles_of(sizes: Tensor) -> Tensor:
    """Returns the (N,) places of the middles of consecutive pieces of `sizes` tokens, in fp32."""
    return sizes.cumsum(0) - sizes / 2


def nearby_means(means: Tensor, sizes: Tensor, width: float) -> Tensor:
    """Means over all tokens within `width` tokens of the middle of each piece, and over all tokens of the piece.

    Args:
        means: (N, C) of the states of each piece.
        sizes: (N,) tokens of the pieces; a piece at the edge of the window counts with the tokens that are inside.
    Returns:
        (N, C).
    """
    ends = sizes.cumsum(0).float()
    begins, middles = ends - sizes, ends - sizes / 2
    first, last = torch.minimum(begins, middles - width), torch.maximum(ends, middles + width)
    edges = torch.cat([begins[:1], ends]).double()
    sums = torch.cat([means.new_zeros(1, means.size(1)).double(), (means * sizes.unsqueeze(1)).double().cumsum(0)])
    total = ends[-1].double()
    first, last = first.double().clamp(min=0), last.double().minimum(total)

    def until(place: Tensor) -> Tensor:
        """Sums the states of all tokens before a place, with a part of the piece that it is in."""
        index = torch.searchsorted(edges, place, right=True).clamp(1, len(edges) - 1)
        inside = (place - edges[index - 1]) / (edges[index] - edges[index - 1]).clamp(min=1)
        return sums[index - 1] + inside.unsqueeze(1) * (sums[index] - sums[index - 1])

    return ((until(last) - until(first)) / (last - first).clamp(min=1).unsqueeze(1)).to(means)
