"""`--store-ema`: the exponential moving average of the weights, which fairseq adds to a checkpoint."""

from collections.abc import Callable
from typing import Any

import torch


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
            average.mul_(self.decay).add_(weights.to(average.dtype), alpha=1 - self.decay)
            averaged.add(average.data_ptr())
        stored[name].copy_(average)
