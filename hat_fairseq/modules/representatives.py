"""Representatives: one token represents each span of a document, and some layers run on these tokens only.

The spans are sentences (represented by their BOS token; Rohde et al. 2021, section 3.1), segments (by their first slot;
Chalkidis et al. 2022, section 3) or blocks. `among` gathers the states of the representatives, applies a function to
them, and writes the result back. All other states stay unchanged. O(S C) besides the function.

Legend: B documents, T tokens, S representatives of the document with most, C channels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Representatives:
    """The positions of the representatives of a batch.

    Attributes:
        positions: (B, S); 0 where a document has fewer than S, and `written` is False.
        padding: (B, S) True = the document has no such representative; None when all have S.
        written: (B, S) False = `scatter` leaves it out; None writes all, which needs distinct positions in a row.
        embedding: (B, S, C) added to the states before they attend to each other, or None.
    """

    positions: Tensor
    padding: Tensor | None = None
    written: Tensor | None = None
    embedding: Tensor | None = None

    def gather(self, x: Tensor) -> Tensor:
        """(B, T, C) states of all tokens -> (B, S, C) states of the representatives."""
        return x.gather(1, self.positions.unsqueeze(-1).expand(-1, -1, x.size(-1)))

    def scatter(self, x: Tensor, states: Tensor) -> Tensor:
        """(B, T, C) states with those of the representatives replaced by the (B, S, C) `states`."""
        if self.written is None:
            return x.scatter(1, self.positions.unsqueeze(-1).expand_as(states), states)
        length = x.size(1)
        target = self.positions.masked_fill(~self.written, length).unsqueeze(-1).expand_as(states)
        spare = x.new_zeros(x.size(0), 1, x.size(2))
        return torch.cat([x, spare], dim=1).scatter(1, target, states)[:, :length]


def among(x: Tensor, representatives: Representatives, function: Callable[[Tensor], Tensor]) -> Tensor:
    """(B, T, C) states in which those of the representatives are replaced by `function` of them.

    Args:
        function: (B, S, C) -> (B, S, C).
    """
    return representatives.scatter(x, function(representatives.gather(x)))


def representatives_at(starts: Tensor, most: int, fewest: int) -> Representatives:
    """Representatives at the marked tokens.

    Args:
        starts: (B, T) True = a representative.
        most: S, the largest number of representatives of a document.
        fewest: the smallest. Both are arguments, because computing them here would synchronise with the device.
    """
    batch, length = starts.shape
    # The k-th representative of a row goes to slot k; all other tokens go to a spare last slot, cut off below.
    slots = torch.where(starts, starts.cumsum(dim=1) - 1, most)
    index = torch.arange(length, device=starts.device).expand(batch, length)
    positions = index.new_zeros(batch, most + 1).scatter(1, slots, index)[:, :most]
    if most == fewest:
        return Representatives(positions)
    padding = torch.arange(most, device=starts.device) >= starts.sum(dim=1, keepdim=True)
    return Representatives(positions.masked_fill(padding, 0), padding, written=~padding)
