"""Softmax attention by the fastest kernel for the device, the shapes and the mode.

softmax(queries keys^T / sqrt(E)) values (`naive.attention`), by torch's scaled dot product attention (SDPA). On the CPU
three cases differ:

    chunks  with dropout, for which SDPA has no fused kernel: SDPA for a chunk of queries at a time
    rows    padded self-attention in bf16: SDPA for each row alone, without its padding
    step    the few queries of a decoding step in bf16, which int8 models have too: two products, twice as fast

In grouped-query attention (Ainslie et al. 2023) the queries of a group of heads are joined to one longer row of
queries, so no key is copied.

Legend: B rows, H heads, N heads of keys and values (H or a divisor), T queries, K keys, E channels of a head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .naive import wide

MIN_SCORES = 1 << 18  # T x K from which on attention with dropout is computed in chunks
CHUNK = 256  # queries of a chunk
MAX_STEP_QUERIES = 16  # queries up to which `step_attention` is the faster kernel in bf16
ALIGNMENT = 8  # the memory-efficient SDPA kernel copies a mask whose strides are not multiples of 8


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    self_attention: bool = False,
) -> Tensor:
    """Computes the output of `naive.attention`, (B, H, T, E), whose arguments it has.

    Args:
        mask: from `prepare_mask`, not together with `causal`; every query may attend to at least one key.
        self_attention: queries and keys are of the same tokens, so `mask` also hides queries that are padding.
    """
    if keys.size(1) != queries.size(1):
        if causal or (mask is not None and any(size > 1 for size in mask.shape[-3:-1])):
            raise ValueError("heads that share keys need a mask that is the same for all heads and queries")
        grouped = queries.reshape(keys.size(0), keys.size(1), -1, keys.size(3))  # B x N x (H / N T) x E
        return attend(grouped, keys, values, mask, dropout).reshape(queries.shape)
    if queries.device.type == "cpu":
        if dropout and queries.size(2) * keys.size(2) >= MIN_SCORES:
            return attention_in_chunks(queries, keys, values, mask, dropout, causal)
        if queries.dtype is torch.bfloat16 and not (dropout or causal or torch.is_grad_enabled()):
            if self_attention and queries.size(2) > 1:
                if mask is not None:
                    return attention_of_rows(queries, keys, values, mask)
            elif queries.size(2) <= MAX_STEP_QUERIES:
                return step_attention(queries, keys, values, mask)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, causal)


def attention_in_chunks(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float, causal: bool
) -> Tensor:
    """Attends with the weights of one chunk of queries in memory; the backward pass computes them again."""
    if causal:
        mask = torch.ones(queries.size(2), keys.size(2), dtype=torch.bool).tril()
    out = []
    for first in range(0, queries.size(2), CHUNK):
        chunk = slice(first, first + CHUNK)
        chunk_mask = mask[..., chunk, :] if mask is not None and mask.size(-2) > 1 else mask
        arguments = queries[:, :, chunk], keys, values, chunk_mask, dropout
        out.append(checkpoint(F.scaled_dot_product_attention, *arguments, use_reentrant=False))
    return torch.cat(out, dim=2)


def step_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Attends from a few queries to many keys by two products, under a bool mask; scores and softmax are in fp32."""
    q, k, v = (x.flatten(0, 1) for x in (queries * queries.size(3) ** -0.5, keys, values))
    scores = wide(torch.bmm(q, k.transpose(1, 2))).unflatten(0, queries.shape[:2])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1).to(v.dtype)
    return torch.bmm(weights.flatten(0, 1), v).view(queries.shape)


def attention_of_rows(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attends in each row without its padding, under a (B, 1, 1, T) bool mask.

    SDPA rounds the weights to bf16 in chunks that depend on the padded length. Without padding, a row's result is the
    same to the last bit in every batch. The outputs of padding are zeros.
    """
    length, out = queries.size(2), []
    for row, allowed in enumerate(mask[:, 0, 0]):
        end = int(allowed.nonzero()[-1]) + 1
        q, k, v = (x[row : row + 1, :, :end] for x in (queries, keys, values))
        row_mask = None if allowed[:end].all() else mask[row : row + 1, ..., :end]
        row_out = F.scaled_dot_product_attention(q, k, v, row_mask)
        out.append(F.pad(row_out, (0, 0, 0, length - end)))
    return torch.cat(out)


def prepare_mask(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Makes what `attend` reads fastest in place of the (..., K) bool mask, for queries of this type.

    On the CPU it is `allowed` itself. On other devices it is what SDPA adds to the scores, 0 or -inf, of the same
    shape, with strides as the memory-efficient kernel wants them.
    """
    if allowed.device.type == "cpu":
        return allowed
    *leading, num_keys = allowed.shape
    aligned = -(-num_keys // ALIGNMENT) * ALIGNMENT
    added = torch.full((*leading, aligned), float("-inf"), dtype=dtype, device=allowed.device)[..., :num_keys]
    return added.masked_fill_(allowed, 0.0)
