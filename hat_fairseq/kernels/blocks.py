"""Attention of blocks of queries to blocks of keys that a table names.

Softmax attention of the L queries of a block to the keys of up to K blocks (`naive.attention` under a mask). The keys
of the named blocks are gathered for a few blocks of queries at a time, so that they stay in the processor's cache, and
again in the backward pass: memory is O(T), not O(T K L). On a GPU all blocks are computed at once. O(T K L E)
operations.

Legend: B rows, H heads, R = B x H, N blocks of L positions, T = N x L, K key blocks of a query block, E channels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .attention import is_backward_faster_in_fp32
from .torch_private import FLASH, flash_attention, flash_attention_backward

GATHERED = 1 << 14  # keys at a time on the CPU: with 64 channels 4 MB, about the size of a cache


@dataclass(frozen=True)
class KeyBlocks:
    """Which blocks of keys each block of queries attends to.

    Attributes:
        block_ids: (R N, K) int64 ids of key blocks, counted over all rows.
        added: (R N, K L) what is added to the scores of these keys: 0, or -inf for a key that is hidden.
    """

    block_ids: Tensor
    added: Tensor


def key_blocks(block_ids: Tensor, real: Tensor, dtype: torch.dtype) -> KeyBlocks:
    """Makes the table for `attend_blocks`, for queries of this type.

    Args:
        block_ids: (B, H, N, K) ids of key blocks, -1 for none; no id twice in a query block.
        real: (B, N, L) True = a token, False = padding. A query block without real keys attends to one of them.
    """
    batch, heads, num_blocks, _ = block_ids.shape
    rows = torch.arange(batch * heads, device=real.device).view(batch, heads, 1, 1)
    block_ids, absent = block_ids.clamp(min=0), (block_ids < 0).unsqueeze(-1)
    allowed = real[rows // heads, block_ids].masked_fill(absent, False).flatten(0, 2).flatten(1)
    allowed[:, 0] |= ~allowed.any(dim=1)
    added = torch.zeros(allowed.shape, dtype=dtype, device=real.device).masked_fill_(~allowed, float("-inf"))
    return KeyBlocks((block_ids + rows * num_blocks).flatten(0, 2), added)


def attend_blocks(queries: Tensor, keys: Tensor, values: Tensor, blocks: KeyBlocks, dropout: float = 0.0) -> Tensor:
    """Attends from each query to the keys of its block's key blocks; (B, H, N, L, E) each, also the output."""
    seed = int(torch.empty((), dtype=torch.int64).random_(1 << 62)) if dropout else 0
    flat = (x.flatten(0, 2) for x in (queries, keys, values))
    return _BlockAttention.apply(*flat, blocks.block_ids, blocks.added, dropout, seed).view(queries.shape)


class _BlockAttention(torch.autograd.Function):
    """(R N, L, E) queries, keys and values, a chunk of query blocks at a time."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        q, k, v, block_ids, added, dropout, seed = args
        out = torch.empty_like(q)
        flash = FLASH and not dropout and q.device.type == "cpu"
        logsumexp = q.new_empty(q.shape[:2], dtype=torch.promote_types(q.dtype, torch.float32)) if flash else None
        for part, _, inputs, chunk_mask in _chunks(q, k, v, block_ids, added):
            if logsumexp is None:
                result = _attend(inputs, chunk_mask, dropout, seed + part.start)
            else:
                result, sums = flash_attention(*inputs, attn_mask=chunk_mask)
                logsumexp[part] = sums.squeeze(1)
            out[part] = result.squeeze(1)
        ctx.save_for_backward(q, k, v, block_ids, added, out, logsumexp)
        ctx.dropout = dropout, seed
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, block_ids, added, out, logsumexp = ctx.saved_tensors
        dropout, seed = ctx.dropout
        grad_queries, wide = torch.empty_like(q), torch.promote_types(q.dtype, torch.float32) if q.is_cpu else q.dtype
        grad_keys, grad_values = (torch.zeros_like(x, dtype=wide) for x in (k, v))
        product = torch.float32 if not dropout and is_backward_faster_in_fp32(q, added.size(1)) else q.dtype
        for part, index, inputs, chunk_mask in _chunks(q, k, v, block_ids, added):
            gradient, chunk_mask = gradients[0][part].unsqueeze(1).to(product), chunk_mask.to(product)
            inputs = [x.to(product) for x in inputs]
            if logsumexp is None:
                with torch.enable_grad():
                    inputs = [x.detach().requires_grad_() for x in inputs]
                    result = _attend(inputs, chunk_mask, dropout, seed + part.start)
                grad_inputs = torch.autograd.grad(result, inputs, gradient)
            else:
                result, sums = out[part].unsqueeze(1).to(product), logsumexp[part].unsqueeze(1)
                grad_inputs = flash_attention_backward(
                    gradient, *inputs, result, sums, 0.0, False, attn_mask=chunk_mask
                )
            grad_queries[part] = grad_inputs[0].squeeze(1)
            for total, pieces in zip((grad_keys, grad_values), grad_inputs[1:], strict=True):
                total.index_add_(0, index, pieces.reshape(-1, *total.shape[1:]).to(wide))
        return grad_queries, grad_keys.to(k.dtype), grad_values.to(v.dtype), None, None, None, None


def _chunks(
    q: Tensor, k: Tensor, v: Tensor, block_ids: Tensor, added: Tensor
) -> Iterator[tuple[slice, Tensor, list[Tensor], Tensor]]:
    """Yields slices of the query blocks and the ids of their key blocks in one row, with the inputs of SDPA.

    These are (n, 1, L, E) queries, (n, 1, K L, E) keys and values, and (n, 1, 1, K L) added to the scores.
    """
    size = max(1, GATHERED // added.size(1)) if q.device.type == "cpu" else len(q)
    for first in range(0, len(q), size):
        part = slice(first, first + size)
        index = block_ids[part].flatten()
        gathered = [x.index_select(0, index).view(len(q[part]), 1, -1, x.size(2)) for x in (k, v)]
        yield part, index, [q[part].unsqueeze(1), *gathered], added[part, None, None]


def _attend(inputs: list[Tensor], added: Tensor, dropout: float, seed: int) -> Tensor:
    """SDPA whose dropout depends on the seed alone, so that the backward pass can draw it again."""
    q, k, v = inputs
    if not dropout:
        return F.scaled_dot_product_attention(q, k, v, added)
    with torch.random.fork_rng([q.device] if q.is_cuda else []):
        torch.manual_seed(seed)
        return F.scaled_dot_product_attention(q, k, v, added, dropout)
