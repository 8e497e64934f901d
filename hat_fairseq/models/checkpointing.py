"""Activation checkpointing of one layer, torch's non-reentrant kind.

fairseq's own wrapper is reentrant: a tensor that reaches a layer other than as an argument breaks its backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint


def run_layer(layer: nn.Module, *args: Any, checkpoint: bool = False, **kwargs: Any) -> Any:
    """`layer(*args, **kwargs)`; with `checkpoint` its activations are recomputed in the backward pass."""
    if checkpoint and torch.is_grad_enabled():
        return torch_checkpoint(layer, *args, use_reentrant=False, **kwargs)
    return layer(*args, **kwargs)
