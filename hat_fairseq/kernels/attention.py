"""Softmax attention by the fastest kernel for the device, the shapes and the mode.

softmax(queries keys^T / sqrt(E)) values (`naive.attention`), by torch's scaled dot product attention (SDPA). On the CPU
four cases differ:

    chunks  with dropout, for which SDPA has no fused kernel: SDPA for a chunk of queries at a time
    rows    padded self-attention in bf16, which int8 models have too: SDPA for each row alone, without its padding
    step    the few queries of a decoding step in bf16: two products, twice as fast
    short   training in bf16 without dropout, K x E small: SDPA in fp32, whose backward pass is up to 5 times as fast

In grouped-query attention (Ainslie et al. 2023) the queries of a group of heads are joined to one longer row of
queries, so no key is copied.

Sliding windows: block n holds queries n L to n L + L - 1, and its window W keys, from key n D - P on. The windows are
one strided view of the keys, so no key is copied. SDPA computes all blocks at once. O(T W E) operations, and no T x K
matrix.

Legend: B rows, H heads, N heads of keys and values (H or a divisor), T queries, K keys, E channels of a head. Windows:
N blocks, L queries of a block, W keys of a window, D keys from one window to the next, P keys before the block, G keys
that all queries of a row share.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .naive import wide

MIN_SCORES = 1 << 18  # T x K from which on attention with dropout is computed in chunks
CHUNK = 256  # queries of a chunk
MAX_STEP_QUERIES = 16  # queries up to which `step_attention` is the faster kernel in bf16
MAX_IN_FP32 = 1 << 14  # K x E up to which the backward pass of SDPA is faster in fp32 than in bf16, with AMX
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
        of_document = self_attention and queries.size(2) > 1
        infers_in_bf16 = queries.dtype is torch.bfloat16 and not (dropout or causal or torch.is_grad_enabled())
        if infers_in_bf16 and of_document and mask is not None:
            return attention_of_rows(queries, keys, values, mask)
        if infers_in_bf16 and not of_document and queries.size(2) <= MAX_STEP_QUERIES:
            return step_attention(queries, keys, values, mask)
        if not dropout and _is_trained_in_fp32(queries, keys, values, keys.size(2)):
            with torch.autocast("cpu", enabled=False):
                q, k, v = queries.float(), keys.float(), values.float()
                return attend(q, k, v, mask, causal=causal).to(queries.dtype)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, causal)


def is_backward_faster_in_fp32(queries: Tensor, num_keys: int) -> bool:
    """Returns whether the backward pass of SDPA with so many keys is faster in fp32 than in the type of the queries."""
    return queries.dtype is torch.bfloat16 and queries.is_cpu and num_keys * queries.size(-1) <= MAX_IN_FP32


def _is_trained_in_fp32(queries: Tensor, keys: Tensor, values: Tensor, num_keys: int) -> bool:
    trained = torch.is_grad_enabled() and any(x.requires_grad for x in (queries, keys, values))
    return trained and is_backward_faster_in_fp32(queries, num_keys)


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

    SDPA sums, and in bf16 rounds the weights, in chunks that depend on the padded length. Without padding, a row's
    products are the same in every batch. The outputs of padding are zeros.
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
    if not dropout and _is_trained_in_fp32(queries, keys, values, windows.size):
        with torch.autocast("cpu", enabled=False):  # here, so that keys are not copied for each window
            q, k, v = queries.float(), keys.float(), values.float()
            pair = None if shared is None else (shared[0].float(), shared[1].float())
            return attend_windows(q, k, v, mask, windows, shared=pair).to(queries.dtype)
    batch, _, length, _ = queries.shape
    num_blocks = windows.num_blocks(length, keys.size(2))
    if missing := num_blocks * windows.block - length:
        queries = F.pad(queries, (0, 0, 0, missing))
    # B x H x (N L) x E -> (B N) x H x L x E
    blocks = queries.transpose(1, 2).unflatten(1, (num_blocks, -1)).flatten(0, 1).transpose(1, 2)
    views = [_window_view(x, windows, num_blocks) for x in (keys, values)]
    if shared is not None:
        # B x H x G x E -> (B N) x H x G x E, the same for the blocks of a row
        copies = (x.unsqueeze(1).expand(-1, num_blocks, -1, -1, -1).flatten(0, 1) for x in shared)
        views = [torch.cat(pair, dim=2) for pair in zip(views, copies, strict=True)]
    out = attend(blocks, views[0], views[1], mask, dropout)
    # (B N) x H x L x E -> B x H x T x E
    return out.transpose(1, 2).reshape(batch, num_blocks * windows.block, *out.shape[1::2])[:, :length].transpose(1, 2)


def _window_view(x: Tensor, windows: Windows, num_blocks: int) -> Tensor:
    """(B, H, K, E) -> (B N, H, W, E) windows that share memory."""
    row, count = num_blocks * windows.step, len(x) * num_blocks
    # all rows one after the other, so that the windows of all rows are at equal distances
    flat = F.pad(x, (0, 0, 0, row - x.size(2))).transpose(1, 2).flatten(0, 1)
    after = (count - 1) * windows.step + windows.size - windows.before - len(flat)
    return F.pad(flat, (0, 0, 0, 0, windows.before, after)).unfold(0, windows.size, windows.step).transpose(2, 3)
