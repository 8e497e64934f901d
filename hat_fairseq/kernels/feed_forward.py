"""The second half of a feed-forward network, activation and linear map, without keeping the activation's output.

Between a network's two maps there are two tensors of the largest size of a layer. The second one is a cheap function of
the first, so the backward pass computes it again: a quarter of an encoder layer's activations less, at the cost of one
activation. The numbers are those of `linear(activation(x))`.

Legend: N rows (any number of leading axes), F feed-forward channels, C channels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .linear import gradients_of_linear, product

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
_BACKWARD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda gradient, x: torch.ops.aten.threshold_backward(gradient, x, 0),
    "gelu": lambda gradient, x: torch.ops.aten.gelu_backward(gradient, x),
}


def activated_linear(x: Tensor, activation: str, linear: nn.Linear) -> Tensor:
    """(..., F) -> (..., C): `linear(activation(x))`, for an activation of `ACTIVATIONS`."""
    autocast = torch.is_autocast_enabled(x.device.type)
    if not torch.is_grad_enabled() or autocast or not isinstance(linear, nn.Linear) or torch.compiler.is_compiling():
        return linear(ACTIVATIONS[activation](x))
    return _ActivatedLinear.apply(x, linear.weight, linear.bias, activation)


class _ActivatedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.activation, ctx.has_bias = activation, bias is not None
        return product(ACTIVATIONS[activation](x), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needed = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.has_bias and ctx.needs_input_grad[2])
        of_hidden, of_weight, of_bias = gradients_of_linear(
            gradients[0], ACTIVATIONS[ctx.activation](x), weight, needed
        )
        of_x = None if of_hidden is None else _BACKWARD[ctx.activation](of_hidden, x)
        return of_x, of_weight, of_bias, None
