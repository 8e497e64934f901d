"""`nn.Linear` on the faster of torch's two CPU libraries, and the memory-efficient feed-forward network.

torch multiplies fp32 matrices on the CPU with MKL. oneDNN, which torch contains as well, is numerically equivalent and
1.2 to 1.6 times as fast on processors that MKL is not optimised for (AMD). There `Linear` takes oneDNN for outputs and
gradients of inputs if the weight is large. In all other cases (Intel's processors, GPU, bf16, autocast, small weights)
it is `nn.Linear`. `packed_linear.py` is faster still for weights that are not trained.

The two largest tensors of a transformer layer are the input and the output of the activation in its feed-forward
network. `feed_forward` keeps the input only and recomputes the output in the backward pass, which saves a quarter of an
encoder layer's activations.

Legend: N rows (any number of leading axes), I inputs, O outputs; C channels, F feed-forward channels.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from . import torch_private
from .naive import activated
from .torch_private import activation_backward, onednn_linear

SMALLEST = 1 << 16  # entries of a weight from which on oneDNN's call costs less than it saves
Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


class Linear(nn.Linear):
    """`nn.Linear(in_features, out_features, bias)` with the same parameters; see the top of this file."""

    cache_dtype: torch.dtype | None = None  # in which outputs that are read again at every step are kept; None: as is

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """(..., I) -> (..., O); `activation`: None or one of `ACTIVATIONS`."""
        product = fastest_product(x, self.weight)
        if product is F.linear or not torch.is_grad_enabled():
            return activated(product(x, self.weight, self.bias), activation)
        return activated(_Linear.apply(x, self.weight, self.bias, None, product), activation)


def feed_forward(x: Tensor, fc1: nn.Module, fc2: nn.Module, activation: str, dropout: float = 0.0) -> Tensor:
    """(..., C) -> (..., C): fc2(dropout(activation(fc1(x)))).

    Args:
        fc1, fc2: (C, F) and (F, C) maps, `Linear` or `PackedLinear`.
        activation: one of `ACTIVATIONS`.
        dropout: probability of dropping an output of the activation.
    """
    autocast = torch.is_autocast_enabled(x.device.type)
    if not isinstance(fc2, Linear) or dropout or autocast or not torch.is_grad_enabled():
        return fc2(F.dropout(fc1(x, activation), dropout))
    return _Linear.apply(fc1(x), fc2.weight, fc2.bias, activation, fastest_product(x, fc2.weight))


def fastest_product(x: Tensor, weight: Tensor) -> Product:
    """`F.linear`, or `onednn_linear` (which autograd cannot differentiate) where that is faster for `x`."""
    return _choose(x.dtype, weight.dtype, weight.device.type, weight.numel(), torch.is_autocast_enabled("cpu"))


@lru_cache(maxsize=1024)
def _choose(x_dtype: torch.dtype, dtype: torch.dtype, device: str, entries: int, autocast: bool) -> Product:
    suited = (
        torch_private.PREFER_ONEDNN and device == "cpu" and x_dtype is dtype is torch.float32 and entries >= SMALLEST
    )
    return onednn_linear if suited and not autocast else F.linear


class _Linear(torch.autograd.Function):
    """product(activation(x), weight, bias); of these, only `x` and `weight` are kept for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None, product: Product
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.activation, ctx.product = activation, product
        return product(activated(x, activation), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), gradient = ctx.saved_tensors, gradients[0]
        of_x = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            onednn = ctx.product is not F.linear
            of_x = ctx.product(gradient, weight.t().contiguous(), None) if onednn else gradient @ weight
            if ctx.activation is not None:
                of_x = activation_backward(of_x, x, ctx.activation)
        rows = gradient.reshape(-1, gradient.size(-1))
        if ctx.needs_input_grad[1]:  # MKL is the faster library here
            of_weight = rows.t() @ activated(x, ctx.activation).reshape(-1, x.size(-1))
        if ctx.needs_input_grad[2]:
            of_bias = rows.sum(0)
        return of_x, of_weight, of_bias, None, None
