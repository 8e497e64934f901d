"""From tokens to sentences and back: every sentence is represented by the state of its first token, its BOS marker.

Rohde et al. 2021, section 3.1. Linear in the number of tokens, no loop over the batch; the one number that leaves the
device is the largest sentence count of the batch. A document without markers has one sentence, so that every module
takes part in every step.

Legend: B documents, T tokens, S sentences of the longest document, C channels.
"""

from __future__ import annotations

import torch
from torch import Tensor


def sentence_starts(tokens: Tensor, bos: int, pad: int) -> Tensor:
    """True where a sentence starts: at every BOS marker, and always at a document's first token.

    Args:
        tokens: (B, T) token ids, padded on either side.
    Returns:
        (B, T) bool, at least one True per row (also in a row of nothing but padding: its first position).
    """
    first = tokens.ne(pad).to(torch.uint8).argmax(dim=1, keepdim=True)
    return tokens.eq(bos).scatter(1, first, True)


def sentence_positions(starts: Tensor, size: int | None = None) -> tuple[Tensor, Tensor]:
    """Where the sentences start, as indices that `gather_sentences` takes.

    Args:
        starts: (B, T) bool.
        size: S if it is known; to find it out is to wait for the device.
    Returns:
        (B, S) positions, 0 where a document has fewer sentences, and (B, S) padding mask, True = no such sentence.
    """
    batch, length = starts.shape
    counts = starts.sum(dim=1)
    size = int(counts.max()) if size is None else size
    # The k-th start of a row goes to slot k; all other tokens go to a spare last slot, cut off below.
    slots = torch.where(starts, starts.cumsum(dim=1) - 1, size)
    index = torch.arange(length, device=starts.device).expand(batch, length)
    positions = index.new_zeros(batch, size + 1).scatter(1, slots, index)[:, :size]
    padding_mask = torch.arange(size, device=starts.device) >= counts[:, None]
    return positions.masked_fill(padding_mask, 0), padding_mask


def gather_sentences(x: Tensor, positions: Tensor) -> Tensor:
    """(B, T, C) token states -> (B, S, C) states at `positions`."""
    return x.gather(1, positions.unsqueeze(-1).expand(-1, -1, x.size(-1)))


def scatter_sentences(x: Tensor, positions: Tensor, padding_mask: Tensor, states: Tensor) -> Tensor:
    """(B, T, C) token states with those at `positions` replaced by the (B, S, C) `states`; padded slots write
    nothing."""
    length = x.size(1)
    target = positions.masked_fill(padding_mask, length).unsqueeze(-1).expand_as(states)
    spare = x.new_zeros(x.size(0), 1, x.size(2))
    return torch.cat([x, spare], dim=1).scatter(1, target, states)[:, :length]


def sentence_of_each_token(starts: Tensor) -> Tensor:
    """(B, T) bool starts -> (B, T) position where each token's sentence starts; 0 for padding on the left."""
    index = torch.arange(starts.size(1), device=starts.device)
    return torch.where(starts, index, 0).cummax(dim=1).values
