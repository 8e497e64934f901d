"""Pooling of the states of a document's segments to one vector.

Chalkidis et al. 2022, section 4: `max`, `attentive` (a learned weight for each segment, softmax over the segments),
`first` and `last`; Liu et al. 2022, section 3.2: `mean` and `min`. O(N C), `attentive` O(N C^2).

Legend: B documents, N segments, C channels.
"""

import torch
from torch import Tensor, nn

POOLINGS = ("max", "attentive", "first", "last", "mean", "min")


class SegmentPooling(nn.Module):
    """Pools segment states.

    Args:
        pooling: one of `POOLINGS`.
        embed_dim: channels C; only `attentive` has parameters.
    Raises:
        ValueError: unknown pooling.
    """

    def __init__(self, pooling: str, embed_dim: int) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise ValueError(f"unknown pooling {pooling!r}; choose one of {', '.join(POOLINGS)}")
        self.pooling = pooling
        if pooling == "attentive":
            self.projection = nn.Linear(embed_dim, embed_dim)
            self.score = nn.Linear(embed_dim, 1, bias=False)

    def forward(self, segments: Tensor, padding_mask: Tensor) -> Tensor:
        """(B, N, C) -> (B, C).

        `padding_mask`: (B, N), True = no such segment; every row has a segment.
        """
        if self.pooling == "max":
            return segments.masked_fill(padding_mask.unsqueeze(-1), float("-inf")).amax(dim=1)
        if self.pooling == "min":
            return segments.masked_fill(padding_mask.unsqueeze(-1), float("inf")).amin(dim=1)
        if self.pooling == "first":
            return segments[:, 0]
        if self.pooling == "last":
            last = (~padding_mask).cumsum(dim=1).argmax(dim=1)
            return segments[torch.arange(len(segments), device=segments.device), last]
        scores = segments.new_zeros(padding_mask.shape)
        if self.pooling == "attentive":
            scores = torch.tanh(self.score(self.projection(segments))).squeeze(-1)
        weights = scores.masked_fill(padding_mask, float("-inf")).softmax(dim=1)
        return (weights.unsqueeze(-1) * segments).sum(dim=1)


def max_pooling_share(segments: Tensor, padding_mask: Tensor) -> Tensor:
    """(B, N, C) states and their (B, N) padding mask -> (B, N): share of the channels that `max` takes from a segment.

    Of equal maxima the first one counts.
    """
    winner = segments.masked_fill(padding_mask.unsqueeze(-1), float("-inf")).argmax(dim=1)  # B x C
    won = winner.new_zeros(padding_mask.shape).scatter_add(1, winner, torch.ones_like(winner))
    return won / winner.size(1)
