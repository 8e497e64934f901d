"""Attention of blocks of queries to overlapping windows of keys, for sliding-window attention.

Block n holds queries n L to n L + L - 1. Its window holds W keys, from key n D - P on. The windows are copied and
computed for a chunk of blocks at a time, and again in the backward pass; on a GPU for all blocks at once. O(T W E)
operations; memory O(T).

Legend: B rows, H heads, T queries, S keys, E channels of a head, N blocks, L queries of a block, W keys of a window,
D keys from one window to the next, P keys before the block, G keys that all queries of a row share.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

COPIED = 1 << 14  # keys at a time on the CPU


@dataclass(frozen=True)
class Windows:
    """The window of keys of each block of queries.

    Attributes:
        block: L.
        step: D.
        before: P.
        size: W.
    """

    block: int
    step: int
    before: int
    size: int

    def num_blocks(self, length: int) -> int:
        """N for T queries."""
        return -(-length // self.block)

    def queries(self, length: int, device: torch.device) -> Tensor:
        """(N, L) positions of the queries of each block; some are beyond T."""
        return torch.arange(self.num_blocks(length) * self.block, device=device).unflatten(0, (-1, self.block))

    def keys(self, length: int, device: torch.device) -> Tensor:
        """(N, W) positions of the keys of each window; some are negative or beyond S."""
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
    """Softmax attention of each query to the keys of its block's window, and to keys that the row's queries share.

    Args:
        queries, keys, values: (B, H, T, E), (B, H, S, E) and (B, H, S, E).
        mask: bool (True = may attend) or from `prepare_mask`, broadcastable to (B N, H, L, W + G); every query may
            attend to at least one key.
        windows: the blocks and their windows.
        dropout: probability of dropping a weight.
        shared: keys and values, (B, H, G, E) each.
    Returns:
        (B, H, T, E).
    """
    batch, _, length, _ = queries.shape
    num_blocks = windows.num_blocks(length)
    last = (num_blocks - 1) * windows.step + windows.size  # where the last window ends
    queries = F.pad(queries, (0, 0, 0, num_blocks * windows.block - length))
    keys, values = (F.pad(x, (0, 0, windows.before, last - windows.before - x.size(2))) for x in (keys, values))
    mask = mask.expand(batch * num_blocks, -1, -1, -1).unflatten(0, (batch, num_blocks))
    size = max(1, COPIED // windows.size) if queries.device.type == "cpu" else num_blocks
    out = []
    for first in range(0, num_blocks, size):
        end = min(first + size, num_blocks)
        visible = slice(first * windows.step, (end - 1) * windows.step + windows.size)
        chunk = queries[:, :, first * windows.block : end * windows.block], keys[:, :, visible], values[:, :, visible]
        arguments = *chunk, mask[:, first:end].flatten(0, 1), windows, dropout, shared
        out.append(checkpoint(_attend_windows, *arguments, use_reentrant=False))
    return torch.cat(out, dim=2)[:, :, :length]


def _attend_windows(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    windows: Windows,
    dropout: float,
    shared: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """`attend_windows` of n whole blocks, whose first window begins with the first key."""
    # B x H x (n L) x E -> (B n) x H x L x E
    blocks = queries.unflatten(2, (-1, windows.block)).transpose(1, 2).flatten(0, 1)
    # B x H x n x E x W -> (B n) x H x W x E
    keys, values = (
        x.unfold(2, windows.size, windows.step).permute(0, 2, 1, 4, 3).flatten(0, 1) for x in (keys, values)
    )
    if shared is not None:
        repeated = [x.repeat_interleave(len(blocks) // len(x), dim=0) for x in shared]
        keys, values = (torch.cat(pair, dim=2) for pair in ((keys, repeated[0]), (values, repeated[1])))
    out = F.scaled_dot_product_attention(blocks, keys, values, mask, dropout)
    return out.unflatten(0, (len(queries), -1)).transpose(1, 2).flatten(2, 3)
