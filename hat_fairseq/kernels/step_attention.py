"""Attention of a few queries over many keys on the CPU: a step of decoding.

The same sums as SDPA's. With a handful of queries all that counts is how fast keys and values come from memory: in fp32
the product keys x queries reads them about 1.3 times as fast as SDPA's blocks do, in bf16 queries x keys does twice as
fast. One pass over keys and one over values, no copies of either.

Legend: D documents, H heads, T queries of a document (its beams), S keys, E channels per head.
"""

from __future__ import annotations

import torch
from torch import Tensor

MOST = 16  # queries; from there on SDPA's blocks pay


def suits(queries: Tensor, dropout: float) -> bool:
    """True where `step_attention` is the faster kernel: few queries, on the CPU, without dropout."""
    return queries.device.type == "cpu" and queries.size(2) <= MOST and not dropout and not torch.is_grad_enabled()


def step_attention(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor | None) -> Tensor:
    """softmax(queries keys^T / sqrt(E)) values.

    Args:
        queries: (D, H, T, E).
        keys, values: (D, H, S, E), also as views of longer buffers.
        allowed: bool, broadcastable to (D, H, T, S), True = may attend; None = all.
    Returns:
        (D, H, T, E).
    """
    documents, heads, length, channels = queries.shape
    q = (queries * channels**-0.5).flatten(0, 1)
    k, v = keys.flatten(0, 1), values.flatten(0, 1)
    if q.dtype is torch.float32:
        scores = torch.bmm(k, q.transpose(1, 2)).transpose(1, 2)
    else:
        scores = torch.bmm(q, k.transpose(1, 2)).float()
    if allowed is not None:
        forbidden = ~allowed
        scores = scores.unflatten(0, (documents, heads)).masked_fill(forbidden, float("-inf")).flatten(0, 1)
    weights = scores.softmax(-1).to(v.dtype)
    return torch.bmm(weights, v).view(documents, heads, length, channels)
