"""Gated attention pooling: one weight for each unit of a document.

Ilse, Tomczak and Welling 2018, *Attention-based Deep Multiple Instance Learning*, equation 9: the weight of unit n is
the softmax over the units of w^T (tanh(V x_n) * sigmoid(U x_n)). The mean gives each of 80 sentences a weight of 1/80,
and what decides a long document is often in a few of them. O(N E H).

Legend: B documents, N units of the document with most, E channels of a unit, H channels of the gate.
"""

import torch
from torch import Tensor, nn


class GatedAttention(nn.Module):
    """The mean of units by weights that are learned."""

    def __init__(self, embed_dim: int, channels: int) -> None:
        super().__init__()
        self.tanh_proj, self.sigmoid_proj = nn.Linear(embed_dim, channels), nn.Linear(embed_dim, channels)
        self.score = nn.Linear(channels, 1)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        """Maps (B, N, E) and a (B, N) padding mask, in which no row is all True -> (B, E)."""
        return (self.weights(x, padding)[:, 0] @ x).squeeze(1)

    def weights(self, x: Tensor, padding: Tensor) -> Tensor:
        """Returns the (B, 1, 1, N) weights, as of one head of one query; those of a document sum to 1."""
        gated = torch.tanh(self.tanh_proj(x)) * torch.sigmoid(self.sigmoid_proj(x))
        scores = self.score(gated).squeeze(2).masked_fill(padding, float("-inf"))
        exact = torch.promote_types(x.dtype, torch.float32)
        return scores.softmax(dim=1, dtype=exact).to(x)[:, None, None]
