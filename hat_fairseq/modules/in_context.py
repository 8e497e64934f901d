"""Vectors in context: an encoder reads a long document in chunks that overlap, and each piece is pooled afterwards.

Günther et al. 2024, *Late Chunking*, with two changes: chunks overlap, and the states of the outer tokens are not used,
so that no token stands at the end of what the encoder reads; and a vector may be the mean of all states within so many
tokens of a piece (windowed late chunking), not of those of the piece alone. O(T) for T tokens.

Legend: T tokens of a document, N pieces, C channels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Ids = Sequence[int]
StatesOf = Callable[[list[list[int]]], Iterable[tuple[int, Tensor]]]  # see `means_in_context`
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


def means_in_context(documents: Sequence[Sequence[Ids]], longest: int, states_of: StatesOf) -> list[Tensor]:
    """Reads documents in chunks, and averages the states of the tokens of each piece.

    States are added to the sum of their piece when they come, so a longer document needs no more memory for states.

    Args:
        documents: the ids of each piece.
        longest: tokens that the encoder reads together, without `<s>` and `</s>`.
        states_of: maps chunks -> the index of each chunk, in any order, and its (T + 2, C) states: those of `<s>`, of
            the T tokens, and of `</s>`.
    Returns:
        (N, C) for each document; zeros for a piece without tokens.
    """
    tokens = [list(chain.from_iterable(pieces)) for pieces in documents]
    sizes = [torch.tensor(list(map(len, pieces)), dtype=torch.long) for pieces in documents]
    owners = [torch.arange(len(each)).repeat_interleave(each) for each in sizes]
    chunks = [(number, chunk) for number, ids in enumerate(tokens) for chunk in chunks_of(len(ids), longest)]
    sums: dict[int, Tensor] = {}
    for index, states in states_of([tokens[number][chunk.begin : chunk.end] for number, chunk in chunks]):
        number, (begin, _, first, last) = chunks[index]
        if number not in sums:
            sums[number] = states.new_zeros(len(sizes[number]), states.size(1))
        inside = states[1 + first - begin : 1 + last - begin]
        sums[number].index_add_(0, owners[number][first:last].to(states.device), inside)
    return [sums[number] / each.clamp(min=1).to(sums[number].device).unsqueeze(1) for number, each in enumerate(sizes)]


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
