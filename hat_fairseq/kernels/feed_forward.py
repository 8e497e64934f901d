"""The feed-forward network, memory-efficient in training.

The two largest tensors of a transformer layer are the input and the output of the activation in its feed-forward
network. `feed_forward` keeps the input only and recomputes the output in the backward pass, which saves a quarter of an
encoder layer's activations. A gated activation maps 2 F channels to F.

Legend: N rows (any number of leading axes), C channels, F feed-forward channels.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .naive import GATED, activated
from .precision import Linear, PackedLinear


def feed_forward(x: Tensor, fc1: nn.Module, fc2: nn.Module, activation: str, dropout: float = 0.0) -> Tensor:
    """Maps (..., C) -> (..., C): fc2(dropout(activation(fc1(x)))).

    Any other module than a `Linear` or a `PackedLinear`, such as one with an adapter, is called with its input alone,
    and so is a `Linear` that hooks, pruning or another parametrization have changed.
    """
    autocast = torch.is_autocast_enabled(x.device.type)
    if is_plain(fc2) and torch.is_grad_enabled() and not (dropout or autocast):
        return _ActivatedLinear.apply(fc1(x), fc2.weight, fc2.bias, activation)
    fused = isinstance(fc1, PackedLinear) and activation not in GATED
    hidden = fc1(x, activation) if fused else activated(fc1(x), activation)
    return fc2(F.dropout(hidden, dropout))


def is_plain(module: nn.Module) -> bool:
    """Returns whether a module is a `Linear` whose call does nothing but the product with its own parameters."""
    changed = module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    own = "weight" in module._parameters and "forward" not in module.__dict__
    return type(module) is Linear and own and not changed


class _ActivatedLinear(torch.autograd.Function):
    """activation(x) weight^T + bias; of these, only `x` and `weight` are kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.activation = activation
        return F.linear(activated(x, activation), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), gradient = ctx.saved_tensors, gradients[0]
        grad_x = grad_weight = grad_bias = None
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            hidden = activated(x, ctx.activation)
        if ctx.needs_input_grad[0]:
            (grad_x,) = torch.autograd.grad(hidden, x, gradient @ weight)
        rows = gradient.reshape(-1, gradient.size(-1))
        if ctx.needs_input_grad[1]:
            grad_weight = rows.t() @ hidden.detach().reshape(-1, hidden.size(-1))
        if ctx.needs_input_grad[2]:
            grad_bias = rows.sum(0)
        return grad_x, grad_weight, grad_bias, None
