"""Linear maps for inference on the CPU: weights laid out once as oneDNN reads them, in fp32, bf16 or int8.

    fp32   the sums of `nn.Linear`; 2 to 5 times as fast as MKL for the few rows of a decoding step
    bf16   weights and inputs rounded to 8 bits of mantissa, sums in fp32, results in bf16; half the bytes
    int8   weights as 8-bit integers with one scale for each output, inputs with one scale and one zero for each call;
           results in fp32

A quantised model keeps its norms, residuals, softmaxes and tables in fp32.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from . import linear
from .linear import SMALLEST, Linear, onednn_linear

PRECISIONS = ("fp32", "bf16", "int8")  # of a `PackedLinear`
ROWS = 512  # the number of rows that weights are laid out for; the layout is as good for 4 and for 3,000


class PackedLinear(nn.Module):
    """A linear map that can no longer be trained, moved or saved.

    Args:
        source: a map on the CPU, fp32 (or bf16, which stays bf16); it is not changed.
        precision: one of `PRECISIONS`.
    """

    def __init__(self, source: nn.Linear, precision: str = "fp32") -> None:
        super().__init__()
        self.in_features, self.out_features = source.in_features, source.out_features
        weight = source.weight.detach()
        self.precision = "bf16" if weight.dtype is torch.bfloat16 else precision
        self.dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32  # of inputs and outputs
        self.bias = None if source.bias is None else source.bias.detach().to(self.dtype)
        if self.precision == "int8":
            # symmetric, so that the weights' zero is 0
            self.scales = weight.float().abs().amax(1).clamp(min=1e-12) / 127
            integers = (weight / self.scales[:, None]).round().to(torch.int8)
            self.zeros = torch.zeros(self.out_features, dtype=torch.int64)
            self.packed = torch.ops.onednn.qlinear_prepack(integers, [ROWS, self.in_features])
        else:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(self.dtype), ROWS)

    @property
    def keeps(self) -> torch.dtype:
        """In which type keys and values that this map makes are best kept: they are read again at every step."""
        return torch.float32 if self.precision == "fp32" else torch.bfloat16

    def forward(self, x: Tensor, activation: str = "none") -> Tensor:
        """(..., I) -> (..., O); `activation`: none, relu or gelu (exact)."""
        if self.precision == "int8":
            return self._int8(x.float(), activation)
        return onednn_linear(x.to(self.dtype), self.packed, self.bias, activation)

    def _int8(self, x: Tensor, activation: str) -> Tensor:
        integers, scale, zero = quantise(x)
        weights = self.packed, self.scales, self.zeros, self.bias
        result = 1.0, 0, torch.float32
        algorithm = "none" if activation == "gelu" else ""
        return torch.ops.onednn.qlinear_pointwise(integers, scale, zero, *weights, *result, activation, [], algorithm)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, precision={self.precision}"


def quantise(x: Tensor) -> tuple[Tensor, float, int]:
    """Integers 0..255 with the scale and zero for which (integers - zero) x scale is nearest to `x`, 0 exactly."""
    if not x.numel():
        return x.to(torch.uint8), 1.0, 0
    least, most = (float(value) for value in torch.aminmax(x))
    least, most = min(least, 0.0), max(most, 0.0)
    scale = (most - least) / 255 or 1.0
    zero = round(-least / scale)
    # half is added because the conversion cuts off
    integers = torch.add(zero + 0.5, x, alpha=1 / scale).clamp_(0, 255).to(torch.uint8)
    return integers, scale, zero


def pack_linears(model: nn.Module, precision: str = "fp32") -> int:
    """Replaces every `Linear` on the CPU below `model` by a `PackedLinear`; in fp32 only where that is faster.

    Returns:
        How many were replaced.
    """
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, Linear) and _can_pack(child.weight, SMALLEST if precision == "fp32" else 0)
    ]
    for parent, name, child in found:
        setattr(parent, name, PackedLinear(child, precision))
    return len(found)


def _can_pack(weight: Tensor, smallest: int) -> bool:
    known = weight.dtype in (torch.float32, torch.bfloat16) and weight.device.type == "cpu"
    return linear.AVAILABLE and known and weight.numel() >= smallest
