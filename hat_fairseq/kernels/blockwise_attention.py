"""Attention on the CPU in blocks of queries: dropout without a T x S matrix, and oneDNN for the products.

softmax(q k' / sqrt(E)) v, as torch's scaled dot product attention (SDPA) computes it. Queries are independent of each
other, so a block of them needs one softmax over all keys and nothing of the other blocks. The backward pass computes
the weights of a block again. Dropout masks follow from a seed that torch's CPU generator draws, so a run that is
repeated, resumed or recomputed (activation checkpointing) is exactly the same. With dropout SDPA keeps T x S matrices
on the CPU; without, it has a fused kernel, faster in training, slower for large matrices in inference.

O(T S E) operations; memory O(T + S) and a few blocks. With one block it is the definition.

Legend: B rows, H heads, T queries, S keys, E channels of a head.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .cpu_dropout import BlockDropout
from .torch_private import large_product, softmax_backward_

BLOCK = 1 << 20  # entries of a block of weights: 4 MB
Block = tuple[Tensor, slice, slice]


def blockwise_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """Arguments and result of `attention.attend`, with a bool mask, or causal."""
    seed = int(torch.empty((), dtype=torch.int64).random_()) if dropout else 0
    return _BlockwiseAttention.apply(queries, keys, values, mask, dropout, causal, seed)


class _BlockwiseAttention(torch.autograd.Function):
    """Head by head, block by block."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        queries, keys, values, mask, dropout, causal, seed = args
        ctx.save_for_backward(queries, keys, values, mask)
        ctx.options = dropout, causal, seed
        rows, heads, length, channels = queries.shape
        out = queries.new_empty(rows, length, heads, channels).transpose(1, 2)  # as its projection will read it
        walk = _Walk(queries, keys, mask, *ctx.options)
        for row, head in walk.heads():
            q, k = _fp32(queries[row, head], channels**-0.5), _fp32(keys[row, head])
            v = _fp32(values[row, head], 1 / (1 - dropout)).t()
            for weights, queries_slice, keys_slice in walk.blocks(row, head, q, k):
                out[row, head, queries_slice] = large_product(walk.drop(weights, weights), v[:, keys_slice])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, mask = ctx.saved_tensors
        of_queries, of_keys, of_values = (_zeros(x) for x in (queries, keys, values))
        walk, scale = _Walk(queries, keys, mask, *ctx.options), queries.size(-1) ** -0.5
        for row, head in walk.heads():
            q, k, v = _fp32(queries[row, head], scale), _fp32(keys[row, head]), _fp32(values[row, head])
            upstream = _fp32(gradients[0][row, head], 1 / (1 - ctx.options[0]))
            of_k, of_v = (torch.zeros(x.size(1), x.size(0)) for x in (k, v))  # transposed: the faster product
            for weights, queries_slice, keys_slice in walk.blocks(row, head, q, k):
                of_v[:, keys_slice] += large_product(upstream[queries_slice].t().contiguous(), walk.drop(weights).t())
                of_weights = large_product(upstream[queries_slice], v[keys_slice])
                walk.drop(of_weights, of_weights)
                softmax_backward_(of_weights, weights)
                of_queries[row, head, queries_slice] = large_product(of_weights, k[keys_slice].t()).mul_(scale)
                of_k[:, keys_slice] += large_product(q[queries_slice].t().contiguous(), of_weights.t())
            of_keys[row, head], of_values[row, head] = of_k.t(), of_v.t()
        return of_queries, of_keys, of_values, None, None, None, None


class _Walk:
    """The blocks of all heads, always in the same order, and their dropped weights."""

    def __init__(
        self, queries: Tensor, keys: Tensor, mask: Tensor | None, dropout: float, causal: bool, seed: int
    ) -> None:
        self.shape = (*queries.shape[:3], keys.size(2))
        self.mask = None if mask is None else mask[(None,) * (4 - mask.dim())].expand(*self.shape[:2], -1, -1)
        self.causal = causal
        _, _, length, num_keys = self.shape
        self.size = min(length, max(64, BLOCK // num_keys // 16 * 16))
        self._dropout = BlockDropout(seed, self.size * num_keys, dropout) if dropout else None
        self._dropped = torch.empty(self.size * num_keys) if dropout else torch.empty(0)

    def heads(self) -> Iterator[tuple[int, int]]:
        yield from ((row, head) for row in range(self.shape[0]) for head in range(self.shape[1]))

    def blocks(self, row: int, head: int, q: Tensor, k: Tensor) -> Iterator[Block]:
        """Yields the weights of each block, its queries and its keys; weights of other keys are 0. `q` is scaled."""
        allowed = None if self.mask is None else self.mask[row, head]
        visible = slice(0, len(k)) if allowed is None else _range(allowed)
        for first in range(0, len(q), self.size):
            queries_slice = slice(first, min(first + self.size, len(q)))
            keys_slice = slice(visible.start, min(visible.stop, queries_slice.stop)) if self.causal else visible
            weights = large_product(q[queries_slice], k[keys_slice])
            if allowed is not None:
                _hide(weights, allowed[queries_slice if len(allowed) > 1 else slice(0, 1), keys_slice])
            elif self.causal:  # only keys from `first` on can be later than a query
                late = weights[:, first:]
                late += torch.full(late.shape, float("-inf")).triu_(1)
            if self._dropout is not None:
                self._dropout.advance()
            yield torch.softmax(weights, -1, out=weights), queries_slice, keys_slice

    def drop(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """`x` with 0 where the current block's weights are dropped; without `out` into memory of its own."""
        if self._dropout is None:
            return x
        return self._dropout.drop(x, self._dropped[: x.numel()].view(x.shape) if out is None else out)


def _range(allowed: Tensor) -> slice:
    """From the first to the last key that any query may see."""
    places = allowed.any(dim=0).nonzero()
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, allowed.size(1))


def _hide(weights: Tensor, allowed: Tensor) -> None:
    if not allowed.all():
        weights += torch.zeros(allowed.shape).masked_fill_(~allowed, float("-inf"))


def _fp32(x: Tensor, scale: float = 1.0) -> Tensor:
    """A head's (T, E) states, contiguous."""
    return x.float().contiguous() if scale == 1 else x.float() * scale


def _zeros(x: Tensor) -> Tensor:
    """(B, H, T, E) zeros in the layout (B, T, H, E) of the projection that they go to."""
    rows, heads, length, channels = x.shape
    return x.new_zeros(rows, length, heads, channels).transpose(1, 2)
