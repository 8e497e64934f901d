"""Memory-efficient feed-forward network: the activation is recomputed in the backward pass.

The two largest tensors of a layer are the input and the output of its activation. The output is a cheap function of the
input, so only the input is kept: a quarter of an encoder layer's activations less, at the cost of one activation.

Legend: N rows (any number of leading axes), C channels, F feed-forward channels.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .linear import Linear, fastest_product, gradients_of_linear
from .naive import ACTIVATIONS
from .torch_private import activation_backward


def feed_forward(x: Tensor, fc1: nn.Module, fc2: nn.Module, activation: str, dropout: float = 0.0) -> Tensor:
    """(..., C) -> (..., C): fc2(dropout(activation(fc1(x)))).

    Args:
        fc1, fc2: (C, F) and (F, C) maps with the arguments of `Linear`.
        activation: one of `ACTIVATIONS`.
        dropout: probability of dropping an output of the activation.
    """
    if not dropout and torch.is_grad_enabled() and isinstance(fc2, Linear):
        return activated_linear(fc1(x), activation, fc2)
    return fc2(F.dropout(fc1(x, activation), dropout))


def activated_linear(x: Tensor, activation: str, linear: Linear) -> Tensor:
    """(..., F) -> (..., C): `linear(activation(x))` without keeping the output of the activation."""
    if torch.is_autocast_enabled(x.device.type) or torch.compiler.is_compiling():
        return linear(ACTIVATIONS[activation](x))
    return _ActivatedLinear.apply(x, linear.weight, linear.bias, activation)


class _ActivatedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.activation, ctx.has_bias = activation, bias is not None
        return fastest_product(x, weight)(ACTIVATIONS[activation](x), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needed = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.has_bias and ctx.needs_input_grad[2])
        of_hidden, of_weight, of_bias = gradients_of_linear(
            gradients[0], ACTIVATIONS[ctx.activation](x), weight, needed
        )
        of_x = None if of_hidden is None else activation_backward(of_hidden, x, ctx.activation)
        return of_x, of_weight, of_bias, None
