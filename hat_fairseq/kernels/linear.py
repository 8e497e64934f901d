"""`nn.Linear` on the faster of torch's two CPU libraries, and the memory-efficient feed-forward network.

torch multiplies fp32 matrices on the CPU with MKL. oneDNN, which torch contains as well, is numerically equivalent, and
1.0 to 1.6 times as fast on some processors and slower on others. `Linear` takes the faster one (`choice.py`) for
outputs and gradients of inputs if the weight is large. In all other cases (GPU, bf16, autocast, small weights) it is
`nn.Linear`. `precision.py` is faster still for weights that are not trained.

The two largest tensors of a transformer layer are the input and the output of the activation in its feed-forward
network. `feed_forward` keeps the input only and recomputes the output in the backward pass, which saves a quarter of an
encoder layer's activations.

Legend: N rows (any number of leading axes), I inputs, O outputs; C channels, F feed-forward channels.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from . import choice, torch_private
from .naive import activated
from .torch_private import onednn_linear

MIN_WEIGHT = 1 << 16  # entries of a weight from which on oneDNN's call costs less than it saves
FEW_ROWS = 32  # up to which reading the weight takes longer than multiplying
TIMED_ROWS, TIMED_WIDTH = {"few_rows": 8, "many_rows": 512}, 768  # of the products that are timed: 0.6 GFLOP at most
Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]
PRODUCTS: dict[str, Product] = {"mkl": F.linear, "onednn": onednn_linear}


class Linear(nn.Linear):
    """`nn.Linear(in_features, out_features, bias)` with the same parameters; see the top of this file."""

    cache_dtype: torch.dtype | None = None  # in which outputs that are read again at every step are kept; None: as is
    rounds_inputs = False  # as in int8, where a last bit of an input may become a step of its integer

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """Maps (..., I) -> (..., O); `activation`: None or one of `ACTIVATIONS`."""
        product = fastest_product(x, self.weight)
        if product is F.linear or not torch.is_grad_enabled():
            return activated(product(x, self.weight, self.bias), activation)
        return activated(_Linear.apply(x, self.weight, self.bias, None, product), activation)


def feed_forward(x: Tensor, fc1: nn.Module, fc2: nn.Module, activation: str, dropout: float = 0.0) -> Tensor:
    """Maps (..., C) -> (..., C): fc2(dropout(activation(fc1(x)))), with maps that are `Linear` or `PackedLinear`."""
    autocast = torch.is_autocast_enabled(x.device.type)
    if not isinstance(fc2, Linear) or dropout or autocast or not torch.is_grad_enabled():
        return fc2(F.dropout(fc1(x, activation), dropout))
    return _Linear.apply(fc1(x), fc2.weight, fc2.bias, activation, fastest_product(x, fc2.weight))


def fastest_product(x: Tensor, weight: Tensor) -> Product:
    """Returns `F.linear`, or `onednn_linear` (which autograd cannot differentiate) where that is faster for `x`."""
    on_cpu = weight.device.type == "cpu" and not torch.is_autocast_enabled("cpu") and torch_private.ONEDNN
    suited = on_cpu and x.dtype is weight.dtype is torch.float32 and weight.numel() >= MIN_WEIGHT
    if not suited or type(x) is not Tensor:  # a subclass of Tensor may compute nothing that could be timed
        return F.linear
    purpose = "few_rows" if x.shape[:-1].numel() <= FEW_ROWS else "many_rows"
    return PRODUCTS[choice.fastest(purpose, lambda: _timed_products(TIMED_ROWS[purpose]))]


def _timed_products(rows: int) -> dict[str, Callable[[], Tensor]]:
    """Calls of all `PRODUCTS` with the same operands."""
    x, weight = torch.ones(rows, TIMED_WIDTH), torch.ones(TIMED_WIDTH, TIMED_WIDTH)
    return {name: partial(product, x, weight, None) for name, product in PRODUCTS.items()}


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
        grad_x = grad_weight = grad_bias = None
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            inputs = activated(x, ctx.activation)
        if ctx.needs_input_grad[0]:
            onednn = ctx.product is not F.linear
            grad_x = ctx.product(gradient, weight.t().contiguous(), None) if onednn else gradient @ weight
            if ctx.activation is not None:
                (grad_x,) = torch.autograd.grad(inputs, x, grad_x)
        rows = gradient.reshape(-1, gradient.size(-1))
        if ctx.needs_input_grad[1]:  # MKL is the faster library here
            grad_weight = rows.t() @ inputs.detach().reshape(-1, x.size(-1))
        if ctx.needs_input_grad[2]:
            grad_bias = rows.sum(0)
        return grad_x, grad_weight, grad_bias, None, None
