"""Attention of blocks of queries to overlapping windows of keys, for sliding-window attention.

Block n holds queries n L to n L + L - 1. Its window holds W keys, from key n D - P on. The windows are one strided view
of the keys, so no key is copied. SDPA computes all blocks at once. O(T W E) operations, and no T x S matrix.

Legend: B rows, H heads, T queries, S keys, E channels of a head, N blocks, L queries of a block, W keys of a window,
D keys from one window to the next, P keys before the block, G keys that all queries of a row share.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .attention import attend


@dataclass(frozen=True)
class Windows:
    """The window of keys of each block of queries: L, D, P and W of the legend."""

    block: int
    step: int
    before: int
    size: int

    def num_blocks(self, length: int) -> int:
        """Returns N for T queries."""
        return -(-length // self.block)

    def queries(self, length: int, device: torch.device) -> Tensor:
        """Returns (N, L) positions of the queries of each block; some are beyond T."""
        return torch.arange(self.num_blocks(length) * self.block, device=device).unflatten(0, (-1, self.block))

    def keys(self, length: int, device: torch.device) -> Tensor:
        """Returns (N, W) positions of the keys of each window; some are negative or beyond S."""
        first = torch.arange(self.num_blocks(length), device=device) * self.step - self.before
        return first.unsqueeze(1) + torch.arange(self.size, device=device)


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
        queries, keys, values: (B, H, T, E), (B, H, S, E) and (B, H, S, E).
        mask: as `attend` takes it, broadcastable to (B N, H, L, W + G).
        shared: keys and values, (B, H, G, E) each.
    Returns:
        (B, H, T, E).
    """
    batch, _, length, _ = queries.shape
    num_blocks = windows.num_blocks(length)
    if missing := num_blocks * windows.block - length:
        queries = F.pad(queries, (0, 0, 0, missing))
    # B x H x (N L) x E -> (B N) x H x L x E
    blocks = queries.transpose(1, 2).unflatten(1, (num_blocks, -1)).flatten(0, 1).transpose(1, 2)
    views = [_WindowView.apply(x, windows, num_blocks) for x in (keys, values)]
    if shared is not None:
        views = [torch.cat([v, _repeat(s, num_blocks)], dim=2) for v, s in zip(views, shared, strict=True)]
    out = attend(blocks, views[0], views[1], mask, dropout)
    # (B N) x H x L x E -> B x H x T x E
    return out.transpose(1, 2).reshape(batch, num_blocks * windows.block, *out.shape[1::2])[:, :length].transpose(1, 2)


def _repeat(x: Tensor, num_blocks: int) -> Tensor:
    """(B, H, G, E) -> (B N, H, G, E), the same for the blocks of a row."""
    return x.unsqueeze(1).expand(-1, num_blocks, -1, -1, -1).flatten(0, 1)


class _WindowView(torch.autograd.Function):
    """(B, H, S, E) -> (B N, H, W, E) windows that share memory. The backward pass adds up what they share."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, windows: Windows, num_blocks: int) -> Tensor:
        batch, heads, length, channels = x.shape
        ctx.sizes = length, windows, num_blocks
        row = num_blocks * windows.step
        assert length <= row
        buffer = x.new_zeros(windows.before + batch * row + windows.size, heads, channels)
        rows = buffer[windows.before : windows.before + batch * row].unflatten(0, (batch, row))
        rows[:, :length] = x.transpose(1, 2)
        key, head, channel = buffer.stride()
        return buffer.as_strided(
            (batch * num_blocks, heads, windows.size, channels), (windows.step * key, head, key, channel)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        length, windows, num_blocks = ctx.sizes
        blocks, heads, _, channels = gradient.shape
        step, parts = windows.step, -(-windows.size // windows.step)
        # W keys of a window are parts of D keys: part p of block n is part 0 of block n + p
        total = gradient.new_zeros(blocks + parts - 1, step, heads, channels)
        for part in range(parts):
            piece = gradient[:, :, part * step : (part + 1) * step].transpose(1, 2)
            total[part : part + blocks, : piece.size(1)] += piece
        rows = total.flatten(0, 1)[windows.before : windows.before + blocks * step]
        return rows.unflatten(0, (-1, num_blocks * step))[:, :length].transpose(1, 2), None, None
