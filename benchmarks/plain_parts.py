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
from hat_fairseq.kernels import attention, blocks, linear, loss, naive, precision

LOGITS = 1 << 24  # of a chunk of the loss, as in `kernels.loss`
KEYS = 1 << 14  # of a chunk of blocks, as in `kernels.blocks`


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float = 0.0, causal: bool = False) -> Tensor:
    """torch's scaled dot product attention, with the arguments of our kernels."""
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)


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
    linear.fastest_product = loss.fastest_product = lambda x, weight: F.linear


def step_to_sdpa() -> None:
    """A decoding step: SDPA in place of two products."""
    attention.step_attention = sdpa


def blocks_to_checkpoint() -> None:
    """Blocks of keys: gathered for a chunk of query blocks, recomputed in the backward pass by autograd."""

    def attend(q: Tensor, k: Tensor, v: Tensor, table: blocks.KeyBlocks, dropout: float = 0.0) -> Tensor:
        shape, chunk = q.shape, max(1, KEYS // table.added.size(1))
        q, k, v = (x.flatten(0, 2) for x in (q, k, v))
        parts = zip(q.split(chunk), table.numbers.split(chunk), table.added.split(chunk), strict=True)
        out = [checkpoint(_blocks, part, k, v, *pair, dropout, use_reentrant=False) for part, *pair in parts]
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
    "chunked loss": [loss_to_checkpoint],
    "packed maps": [maps_to_linear],
    "oneDNN": [onednn_to_linear],
    "step": [step_to_sdpa],
    "search": [],
    "blocks": [blocks_to_checkpoint],
}
