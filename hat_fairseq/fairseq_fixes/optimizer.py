"""What an optimizer takes from a checkpoint: with `--fp16` and `--bf16` the weights in fp32, but no changed settings.

The model of such a training is in half precision, and so in a checkpoint. fairseq begins again with these rounded
weights, so each resumption changes them. Here the state of the optimizer has them in fp32, too.
"""

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

logger = logging.getLogger(__name__)
WEIGHTS = "fp32_weights"  # the key in the state of the optimizer


def _weights(optimizer: Any) -> list[Tensor]:
    weights = optimizer.fp32_params  # flat, one for each device, or of the shapes of the model
    return [weight.detach() for weight in (weights.values() if isinstance(weights, dict) else weights)]


def state_dict(original: Callable[..., Any], self: Any) -> dict[str, Any]:
    """Returns the state with the weights in fp32, as `FP16Optimizer.state_dict` should."""
    return {**original(self), WEIGHTS: _weights(self)}


def load_half_precision(
    original: Callable[..., Any], self: Any, state: dict[str, Any], *args: Any, **kwargs: Any
) -> None:
    """Restores the weights in fp32, too. One that has another value in the model keeps that.

    A mean of checkpoints that fairseq writes has the state of the optimizer of one of them.
    """
    state = dict(state)
    saved, weights = state.pop(WEIGHTS, []), _weights(self)  # a checkpoint of 0.5 has none
    original(self, state, *args, **kwargs)
    if [weight.shape for weight in saved] != [weight.shape for weight in weights]:
        if saved:  # flat ones of a GPU, or those of a CPU
            logger.warning(
                "the fp32 weights of the checkpoint have other shapes: training resumes from the rounded ones"
            )
        return
    half = self.fp16_params[0].dtype
    for weight, exact in zip(weights, saved, strict=True):
        exact = exact.to(weight)
        weight.copy_(torch.where(exact.to(half).to(weight) == weight, exact, weight))


def load_state_dict(
    original: Callable[..., Any], self: Any, state: dict[str, Any], optimizer_overrides: Any = None
) -> None:
    """Keeps the settings of this run, such as `--weight-decay`; fairseq's keeps lr alone. Logs the change."""
    overrides = optimizer_overrides or {}
    names = [name for name in getattr(self.optimizer, "defaults", {}) if name != "lr" and name not in overrides]
    wanted = [{name: group[name] for name in names if name in group} for group in self.param_groups]
    original(self, state, optimizer_overrides)
    for group, settings in zip(self.param_groups, wanted, strict=True):
        for name, value in settings.items():
            if name in group and group[name] != value:
                logger.info("%s of the optimizer is %s, and was %s in the checkpoint", name, value, group[name])
            group[name] = value
