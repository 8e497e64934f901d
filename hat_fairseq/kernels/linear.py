"""`nn.Linear` on the faster of torch's two CPU libraries, and packed for inference.

torch multiplies fp32 matrices on the CPU with MKL. oneDNN, which torch carries as well, gives the same sums 1.2 to 1.6
times as fast on a CPU that MKL is not made for (AMD), and several times as fast for the few rows of a decoding step,
if the weights lie in its own blocked layout. `Linear` takes oneDNN for outputs and gradients of inputs, where the
weights are large enough to be worth the call; everything else (GPU, bf16, autocast, small weights) is `nn.Linear`.
For weights that are not trained any more, `packed_linear.py` goes further.

Parameters and their names are those of `nn.Linear`.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

SMALLEST = 1 << 16  # entries of a weight from which on oneDNN's call costs less than it saves


def _has_onednn() -> bool:
    names = ("_linear_pointwise", "_reorder_linear_weight")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


AVAILABLE = _has_onednn()


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str = "none") -> Tensor:
    """(..., I) and a (O, I) weight, plain or packed -> (..., O); `activation`: none, relu or gelu (exact)."""
    algorithm = "none" if activation == "gelu" else ""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, activation, [], algorithm)


def prefers_onednn(x: Tensor, weight: Tensor) -> bool:
    """True where oneDNN is the faster library for `F.linear(x, weight)`."""
    return (
        AVAILABLE
        and weight.numel() >= SMALLEST
        and weight.device.type == "cpu"
        and x.dtype is weight.dtype is torch.float32
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear` by the faster library, without a gradient of its own where that is oneDNN."""
    return onednn_linear(x, weight, bias) if prefers_onednn(x, weight) else F.linear(x, weight, bias)


def gradients_of_linear(
    gradient: Tensor, x: Tensor, weight: Tensor, needed: tuple[bool, bool, bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of `x`, `weight` and the bias from that of (..., O) outputs; None where not needed.

    For that of the weight MKL is the faster library.
    """
    of_x = of_weight = of_bias = None
    if needed[0]:
        of_x = product(gradient, weight.t().contiguous(), None) if prefers_onednn(x, weight) else gradient @ weight
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

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        wanted = torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)
        if wanted and prefers_onednn(x, self.weight):
            return _OneDnnLinear.apply(x, self.weight, self.bias)
        return product(x, self.weight, self.bias)
