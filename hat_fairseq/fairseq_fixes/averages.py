"""`--store-ema`: the exponential moving average of the weights, which fairseq adds to a checkpoint."""

from collections.abc import Callable
from typing import Any

import fairseq.checkpoint_utils
import torch

from .checkpoints import CheckpointError


@torch.no_grad()
def update(original: Callable[..., Any], self: Any, new_model: Any, updates: int | None = None) -> None:
    """Averages each weight once, and copies integers.

    In fairseq integers, such as fingerprints of dictionaries, end in an error, and weights that several modules share,
    such as embeddings, are averaged once for each of their names.
    """
    stored = self.model.state_dict()  # the tensors themselves
    averages = self.fp32_params if self.config.ema_fp32 else stored
    averaged: set[int] = set()
    for name, weights in new_model.state_dict().items():
        average = averages[name]
        if not weights.is_floating_point() or name in self.skip_keys:
            average.copy_(weights)
        elif average.data_ptr() not in averaged:
            average.lerp_(weights.to(average.dtype), 1 - self.decay)
            averaged.add(average.data_ptr())
        stored[name].copy_(average)


def load(original: Callable[..., Any], path: str) -> dict[str, Any]:
    """Loads a checkpoint with its averages as weights; CheckpointError if it has none."""
    state: dict[str, Any] = fairseq.checkpoint_utils.load_checkpoint_to_cpu(path)
    averages = (state.get("extra_state") or {}).get("ema")
    if averages is None:
        raise CheckpointError(f"{path} has no averages of weights: it was trained without --store-ema")
    return state | {"model": {name: x.float() if x.dtype == torch.float16 else x for name, x in averages.items()}}
