"""`nn.Linear` on the faster of torch's two CPU libraries.

torch multiplies fp32 matrices on the CPU with MKL. oneDNN, which torch contains as well, is numerically equivalent and
1.2 to 1.6 times as fast on CPUs that MKL is not optimised for (AMD). `Linear` takes oneDNN for outputs and gradients of
inputs where the weight is large enough to be worth the call; everything else (GPU, bf16, autocast, small weights) is
`nn.Linear`. `packed_linear.py` goes further for weights that are not trained any more.

Parameters and their names are those of `nn.Linear`.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .naive import ACTIVATIONS
from .torch_private import ONEDNN, onednn_linear

SMALLEST = 1 << 16  # entries of a weight from which on oneDNN's call costs less than it saves
Product = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def fastest_product(x: Tensor, weight: Tensor) -> Product:
    """`F.linear`, or `onednn_linear` (which autograd cannot differentiate) where that is faster for `x`."""
    transformed = torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling()
    return _choose(x.dtype, weight.dtype, weight.device.type, weight.numel(), transformed)


@lru_cache(maxsize=1024)
def _choose(x_dtype: torch.dtype, dtype: torch.dtype, device: str, entries: int, transformed: bool) -> Product:
    suited = ONEDNN and device == "cpu" and x_dtype is dtype is torch.float32 and entries >= SMALLEST
    return onednn_linear if suited and not transformed else F.linear


def gradients_of_linear(
    gradient: Tensor, x: Tensor, weight: Tensor, needed: tuple[bool, bool, bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of `x`, `weight` and the bias from that of (..., O) outputs; None where not needed.

    For that of the weight MKL is the faster library.
    """
    of_x = of_weight = of_bias = None
    if needed[0]:
        product = fastest_product(gradient, weight)
        of_x = gradient @ weight if product is F.linear else product(gradient, weight.t().contiguous(), None)
    rows = gradient.reshape(-1, gradient.size(-1))
    if needed[1]:
        of_weight = rows.t() @ x.reshape(-1, x.size(-1))
    if needed[2]:
        of_bias = rows.sum(0)
    return of_x, of_weight, of_bias


class _OneDnnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return onednn_linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        needed = (ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.has_bias and ctx.needs_input_grad[2])
        x, weight = ctx.saved_tensors
        return gradients_of_linear(gradients[0], x, weight, needed)


class Linear(nn.Linear):
    """`nn.Linear(in_features, out_features, bias)`; see the top of this file."""

    cache_dtype: torch.dtype | None = None  # in which outputs that are read again at every step are kept; None: as is

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """(..., I) -> (..., O); `activation`: None or one of `ACTIVATIONS`."""
        product = fastest_product(x, self.weight)
        if product is not F.linear and torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad):
            product = _OneDnnLinear.apply
        out = product(x, self.weight, self.bias)
        return out if activation is None else ACTIVATIONS[activation](out)
