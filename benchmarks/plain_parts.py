"""The plain version of each fast part of the package, for `ablation.py`.

Each function replaces one part in the running process, before a model is built.

Legend: B rows, H heads, T queries, S keys, E channels of a head, N blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import hat_fairseq.criterions.chunked_label_smoothed_cross_entropy as criterion
from hat_fairseq.kernels import attention, block_attention, linear, naive, precision, windows

QUERIES = 256  # of a chunk of full attention
LOGITS = 1 << 24  # of a chunk of the loss, as in `kernels.chunked_loss`
KEYS = 1 << 14  # of a chunk of windows or blocks, as in `kernels.block_attention`


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float = 0.0, causal: bool = False) -> Tensor:
    """torch's scaled dot product attention, with the arguments of our kernels."""
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)


def dropout_to_checkpoint() -> None:
    """Full attention with dropout: SDPA for chunks of queries, each recomputed in the backward pass."""

    def chunks(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool) -> Tensor:
        if causal:
            mask = torch.ones(q.size(2), k.size(2), dtype=torch.bool).tril()
        out = []
        for first in range(0, q.size(2), QUERIES):
            part = slice(first, first + QUERIES)
            seen = mask[..., part, :] if mask is not None and mask.size(-2) > 1 else mask
            out.append(checkpoint(sdpa, q[:, :, part], k, v, seen, dropout, use_reentrant=False))
        return torch.cat(out, dim=2)

    attention.blockwise_attention = chunks


def loss_to_checkpoint() -> None:
    """Label-smoothed loss: logits of a chunk of positions, recomputed in the backward pass."""

    def chunked(
        features: Tensor, weight: Tensor, target: Tensor, smoothing: float, pad: int, count_correct: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        assert not count_correct
        features, target = features.flatten(0, -2), target.flatten()
        size = max(1, LOGITS // len(weight))
        parts = [
            checkpoint(naive.label_smoothed_loss, f, weight, t, smoothing, pad, use_reentrant=False)
            for f, t in zip(features.split(size), target.split(size), strict=True)
        ]
        loss, nll = (torch.stack(sums).sum() for sums in zip(*parts, strict=True))
        return loss, nll.detach(), torch.zeros(())

    criterion.chunked_label_smoothed_loss = chunked


def maps_to_linear() -> None:
    """`nn.Linear` in place of weights in oneDNN's layout."""
    precision.pack_linears = lambda model, precision="fp32": 0


def onednn_to_linear() -> None:
    """`nn.Linear` in place of oneDNN's product, for weights that are packed and others."""
    maps_to_linear()
    linear._choose = lambda *arguments: F.linear


def step_to_sdpa() -> None:
    """A decoding step: SDPA in place of two products."""
    attention.step_attention = sdpa


def windows_to_checkpoint() -> None:
    """Windows of keys: a chunk of blocks at a time, recomputed in the backward pass, without a backward of our own."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor,
        sizes: windows.Windows,
        dropout: float = 0.0,
        shared: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        assert shared is None  # no global tokens in these benchmarks
        rows, _, length, _ = q.shape
        number, chunk = sizes.num_blocks(length), max(1, KEYS // sizes.size)
        q = F.pad(q, (0, 0, 0, number * sizes.block - length))
        last = (number - 1) * sizes.step + sizes.size
        k, v = (F.pad(x, (0, 0, sizes.before, last - sizes.before - x.size(2))) for x in (k, v))
        mask = mask.unflatten(0, (rows, number))
        out = []
        for first in range(0, number, chunk):
            end = min(first + chunk, number)
            keys = slice(first * sizes.step, (end - 1) * sizes.step + sizes.size)
            queries = q[:, :, first * sizes.block : end * sizes.block]
            arguments = queries, k[:, :, keys], v[:, :, keys], mask[:, first:end], sizes, dropout
            out.append(checkpoint(_windows, *arguments, use_reentrant=False))
        return torch.cat(out, dim=2)[:, :, :length]

    for user in ("sliding_window", "pooling_attention"):
        _module(user).attend_windows = attend


def _windows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sizes: windows.Windows, dropout: float) -> Tensor:
    """(B, H, n L, E) queries and the keys of their n windows -> (B, H, n L, E)."""
    queries = q.unflatten(2, (-1, sizes.block)).transpose(1, 2).flatten(0, 1)
    # B x H x n x E x W -> (B n) x H x W x E
    keys, values = (x.unfold(2, sizes.size, sizes.step).permute(0, 2, 1, 4, 3).flatten(0, 1) for x in (k, v))
    out = sdpa(queries, keys, values, mask.flatten(0, 1), dropout)
    return out.unflatten(0, (len(q), -1)).transpose(1, 2).flatten(2, 3)


def blocks_to_checkpoint() -> None:
    """Blocks of keys: gathered for a chunk of query blocks, recomputed in the backward pass by autograd."""

    def attend(q: Tensor, k: Tensor, v: Tensor, blocks: block_attention.KeyBlocks, dropout: float = 0.0) -> Tensor:
        shape, chunk = q.shape, max(1, KEYS // blocks.added.size(1))
        q, k, v = (x.flatten(0, 2) for x in (q, k, v))
        parts = zip(q.split(chunk), blocks.numbers.split(chunk), blocks.added.split(chunk), strict=True)
        out = [checkpoint(_blocks, part, k, v, *table, dropout, use_reentrant=False) for part, *table in parts]
        return torch.cat(out).view(shape)

    _module("block_sparse").attend_blocks = attend


def _blocks(q: Tensor, k: Tensor, v: Tensor, numbers: Tensor, added: Tensor, dropout: float) -> Tensor:
    """(n, L, E) queries and all blocks of keys -> (n, L, E)."""
    keys, values = (x[numbers].flatten(1, 2).unsqueeze(1) for x in (k, v))
    return sdpa(q.unsqueeze(1), keys, values, added[:, None, None], dropout).squeeze(1)


def _module(name: str) -> Any:
    import importlib

    return importlib.import_module(f"hat_fairseq.modules.{name}")


# Contender: the functions that it calls.
PLAIN: dict[str, list[Callable[[], None]]] = {
    "as it is": [],
    "attention dropout": [dropout_to_checkpoint],
    "chunked loss": [loss_to_checkpoint],
    "packed maps": [maps_to_linear],
    "oneDNN": [onednn_to_linear],
    "step": [step_to_sdpa],
    "search": [],
    "windows": [windows_to_checkpoint],
    "blocks": [blocks_to_checkpoint],
}
