"""Attention of blocks of queries to overlapping windows of keys, for sliding-window attention.

Block n holds queries n L to n L + L - 1. Its window holds W keys, from key n D - P on. The windows are one strided view
of the keys, so no key is copied. SDPA computes all blocks at once. O(T W E) operations, and no T x K matrix.

Legend: B rows, H heads, T queries, K keys, E channels of a head, N blocks, L queries of a block, W keys of a window,
D keys from one window to the next, P keys before the block, G keys that all queries of a row share.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import attend


@dataclass(frozen=True)
class Windows:
    """The window of keys of each block of queries: L, D, P and W of the legend."""

    block: int
    step: int
    before: int
    size: int

    def num_blocks(self, queries: int, keys: int) -> int:
        """Returns N for T queries and K keys."""
        return max(-(-queries // self.block), -(-keys // self.step))

    def positions(self, queries: int, keys: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Returns (N, L, 1) positions of the queries of each block and (N, 1, W) of the keys of its window.

        Some queries are beyond T; some keys are negative or beyond K.
        """
        blocks = torch.arange(self.num_blocks(queries, keys), device=device)[:, None]
        query = blocks * self.block + torch.arange(self.block, device=device)
        key = blocks * self.step - self.before + torch.arange(self.size, device=device)
        return query.unsqueeze(2), key.unsqueeze(1)


def attend_windows(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    windows: Windows,
    dropout: float = 0.0,
    shared: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Attends from each query to the keys of its block's window, and to keys that the row's queries share.

    Args:
        queries, keys, values: (B, H, T, E), (B, H, K, E) and (B, H, K, E).
        mask: as `attend` takes it, broadcastable to (B N, H, L, W + G).
        shared: keys and values, (B, H, G, E) each.
    Returns:
        (B, H, T, E).
    """
    batch, _, length, _ = queries.shape
    num_blocks = windows.num_blocks(length, keys.size(2))
    if missing := num_blocks * windows.block - length:
        queries = F.pad(queries, (0, 0, 0, missing))
    # B x H x (N L) x E -> (B N) x H x L x E
    blocks = queries.transpose(1, 2).unflatten(1, (num_blocks, -1)).flatten(0, 1).transpose(1, 2)
    views = [_window_view(x, windows, num_blocks) for x in (keys, values)]
    if shared is not None:
        views = [torch.cat([v, _repeat(s, num_blocks)], dim=2) for v, s in zip(views, shared, strict=True)]
    out = attend(blocks, views[0], views[1], mask, dropout)
    # (B N) x H x L x E -> B x H x T x E
    return out.transpose(1, 2).reshape(batch, num_blocks * windows.block, *out.shape[1::2])[:, :length].transpose(1, 2)


def _repeat(x: Tensor, num_blocks: int) -> Tensor:
    """(B, H, G, E) -> (B N, H, G, E), the same for the blocks of a row."""
    return x.unsqueeze(1).expand(-1, num_blocks, -1, -1, -1).flatten(0, 1)


def _window_view(x: Tensor, windows: Windows, num_blocks: int) -> Tensor:
    """(B, H, K, E) -> (B N, H, W, E) windows that share memory."""
    row, count = num_blocks * windows.step, len(x) * num_blocks
    # all rows one after the other, so that the windows of all rows are at equal distances
    flat = F.pad(x, (0, 0, 0, row - x.size(2))).transpose(1, 2).flatten(0, 1)
    behind = (count - 1) * windows.step + windows.size - windows.before - len(flat)
    return F.pad(flat, (0, 0, 0, 0, windows.before, behind)).unfold(0, windows.size, windows.step).transpose(2, 3)
