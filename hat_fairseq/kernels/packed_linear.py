"""Linear layers for inference on the CPU, with weights in oneDNN's own layout, in fp32, bf16 or int8.

    fp32   numerically equivalent to `nn.Linear`; 2 to 5 times as fast as MKL for the few rows of a decoding step
    bf16   weights and inputs rounded to 8 bits of mantissa, sums in fp32, results in bf16; half the bytes
    int8   weights as 8-bit integers with a scale for each output, inputs with a scale and a zero for each row, so that
           a row's result does not depend on the other rows of a batch; results in fp32

Layer norms, residuals, softmaxes and embeddings of a quantised model stay in fp32.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

import torch
from torch import Tensor, nn

from . import torch_private
from .exact_int8 import exact_product
from .linear import SMALLEST, Linear
from .naive import activated
from .torch_private import onednn_linear

CPU_PRECISIONS = ("fp32", "bf16", "int8")
ROWS = 512  # the number of rows that weights are laid out for; the layout is as good for 4 and for 3,000


class PackedLinear(nn.Module):
    """A linear map that can no longer be trained, moved or saved.

    Args:
        source: a map on the CPU, fp32 (or bf16, which stays bf16); it is not changed.
        precision: one of `CPU_PRECISIONS`.
    Raises:
        ValueError: products of 8-bit integers are wrong on this processor.
    """

    def __init__(self, source: nn.Linear, precision: str = "fp32") -> None:
        super().__init__()
        self.in_features, self.out_features = source.in_features, source.out_features
        weight = source.weight.detach()
        self.precision = "bf16" if weight.dtype is torch.bfloat16 else precision
        self.dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32  # of inputs and outputs
        self.cache_dtype = torch.float32 if self.precision == "fp32" else torch.bfloat16  # see `Linear`
        self.bias = None if source.bias is None else source.bias.detach().to(self.dtype)
        if self.precision == "int8":
            self.product = exact_product()
            # symmetric, so that the weights' zero is 0
            self.scales = weight.float().abs().amax(1).clamp(min=1e-12) / 127
            integers = (weight / self.scales[:, None]).round()
            self.sums = integers.sum(1) * self.scales  # (O,): what a row of ones would give
            self.zeros = torch.zeros(self.out_features, dtype=torch.int64)
            self.packed = torch_private.pack_int8(integers.to(torch.int8), ROWS)
        else:
            self.packed = torch_private.pack(weight.to(self.dtype), ROWS)

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """(..., I) -> (..., O); `activation`: None, relu or gelu (exact)."""
        if self.precision != "int8":
            return onednn_linear(x.to(self.dtype), self.packed, self.bias, activation)
        integers, scales, offsets = quantise(x.float())
        out = self.product(integers, self.packed, self.scales, self.zeros)
        out = out.mul_(scales).addcmul_(offsets, self.sums)
        if self.bias is not None:
            out += self.bias
        return activated(out, activation)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, precision={self.precision}"


def quantise(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rounds each row to one of 255 equidistant numbers, 0 among them.

    Args:
        x: (..., I) fp32.
    Returns:
        (..., I) uint8 integers, (..., 1) scales and (..., 1) offsets: `x` is about integers x scales + offsets.
    """
    if not x.size(-1):
        return x.to(torch.uint8), x.new_ones(*x.shape[:-1], 1), x.new_zeros(*x.shape[:-1], 1)
    least, most = x.amin(-1, keepdim=True).clamp_(max=0), x.amax(-1, keepdim=True)
    # 254 steps, not 255: the zero is rounded too, and the largest integer must stay below 256
    scales = most.clamp_(min=0).sub_(least).clamp_(min=1e-35).div_(254)
    inverse = scales.reciprocal()
    zeros = least.mul_(inverse).round_()
    # half is added because the conversion truncates
    integers = torch.mul(x, inverse).add_(0.5 - zeros).to(torch.uint8)
    return integers, scales, zeros.mul_(scales)


def pack_linears(model: nn.Module, precision: str = "fp32") -> int:
    """Replaces every `Linear` on the CPU below `model` by a `PackedLinear`; in fp32 only where that is faster.

    Returns:
        How many were replaced.
    """
    maps = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, Linear) and _can_pack(child.weight, SMALLEST if precision == "fp32" else 0)
    ]
    for parent, name, child in maps:
        setattr(parent, name, PackedLinear(child, precision))
    return len(maps)


def _can_pack(weight: Tensor, smallest: int) -> bool:
    known = weight.dtype in (torch.float32, torch.bfloat16) and weight.device.type == "cpu"
    return torch_private.ONEDNN and known and weight.numel() >= smallest
