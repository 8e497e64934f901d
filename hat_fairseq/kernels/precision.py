"""Precision of inference: the whole model on a GPU, linear maps on a CPU, with weights in oneDNN's own layout.

    fp32   anywhere; on a CPU packed maps: numerically equivalent to `nn.Linear`, 2 to 5 times as fast as MKL for the
           few rows of a decoding step
    fp16   on a GPU
    bf16   anywhere; on a CPU weights and inputs rounded to 8 bits of mantissa, sums in fp32, results in bf16
    int8   on a CPU: weights as 8-bit integers with a scale for each output, inputs with a scale and a zero for each
           row, so that a row's result does not depend on the other rows of a batch; results in fp32. Only
           with VNNI instructions, without which oneDNN's products of integers are wrong

On a CPU layer norms, residuals, softmaxes and embeddings stay in fp32.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

import torch
from torch import Tensor, nn

from . import torch_private
from .naive import activated
from .torch_private import ROWS, onednn_int8, onednn_linear

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
AUTO = "auto"  # see `choose_precision`
CPU_PRECISIONS = ("fp32", "bf16", "int8")
MIN_WEIGHT = 1 << 16  # entries of a weight from which on oneDNN's call costs less than it saves in fp32


def choose_precision(precision: str, device: torch.device | str) -> str:
    """Returns `precision`; for `AUTO` bf16 where the device multiplies it fast, else fp32.

    Raises:
        ValueError: see `check_precision`.
    """
    if precision != AUTO:
        check_precision(precision, device)
        return precision
    on_cpu = torch.device(device).type == "cpu"
    fast = torch_private.is_bf16_fast() if on_cpu else torch.cuda.is_bf16_supported(including_emulation=False)
    return "bf16" if fast else "fp32"


def check_precision(precision: str, device: torch.device | str) -> None:
    """Raises ValueError if `precision` is unknown, not supported natively by `device`, or wrong there."""
    kind = torch.device(device).type
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}; choose one of {', '.join(PRECISIONS)}")
    if precision == "fp32":
        return
    if kind == "cpu":
        if precision == "fp16":
            raise ValueError(f"precision fp16 is GPU-only; on this CPU use {' or '.join(cpu_precisions())}")
        if precision == "int8" and not torch_private.INT8:
            raise ValueError(f"precision {precision} needs a torch with oneDNN; this one has none: use fp32")
        if precision == "bf16" and not torch_private.BF16:
            raise ValueError(f"precision bf16: this CPU cannot multiply bf16; use {' or '.join(cpu_precisions())}")
        if precision == "int8" and not torch_private.multiplies_int8():
            ways = " or ".join(cpu_precisions())
            raise ValueError(f"precision int8 needs a CPU with VNNI instructions; this one has none: use {ways}")
    elif precision == "int8":
        raise ValueError(f"precision int8 is CPU-only (device: {device}); on a GPU use fp16 or bf16")
    elif precision == "bf16" and kind == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ValueError("precision bf16: this GPU cannot multiply bf16; use fp16 or fp32")


def cpu_precisions() -> list[str]:
    """Lists those of `CPU_PRECISIONS` that this CPU and this torch have."""
    able = {"fp32": True, "bf16": torch_private.BF16, "int8": torch_private.multiplies_int8()}
    return [name for name in CPU_PRECISIONS if able[name]]


def set_precision(model: nn.Module, precision: str) -> None:
    """Prepares a model for inference, in place: it can no longer be trained, and on a CPU not moved or saved.

    Raises:
        ValueError: see `check_precision`.
    """
    device = next(model.parameters()).device
    check_precision(precision, device)
    if device.type == "cpu":
        pack_linears(model, precision)
    elif precision != "fp32":
        model.to(torch.float16 if precision == "fp16" else torch.bfloat16)


class Linear(nn.Linear):
    """`nn.Linear`, which `pack_linears` may replace by a `PackedLinear`."""


class PackedLinear(nn.Module):
    """A linear map that can no longer be trained, moved or saved.

    `cache_dtype`: the type in which keys and values are attended to and kept in caches, if they are its outputs.

    Args:
        source: a map on the CPU, fp32 (or bf16, which stays bf16); it is not changed.
        precision: one of `CPU_PRECISIONS`.
    Raises:
        ValueError: int8 without VNNI instructions.
    """

    def __init__(self, source: nn.Linear, precision: str = "fp32") -> None:
        super().__init__()
        weight = source.weight.detach()
        self.precision = "bf16" if weight.dtype is torch.bfloat16 else precision
        self.dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32  # of inputs and outputs
        # without bf16 instructions products of bf16 are slower than those of fp32
        in_bf16 = self.precision != "fp32" and torch_private.BF16
        self.cache_dtype = torch.bfloat16 if in_bf16 else torch.float32
        self.bias = None if source.bias is None else source.bias.detach().to(self.dtype)
        if self.precision == "int8":
            check_precision("int8", "cpu")
            # symmetric, so that the weights' zero is 0
            scales = weight.float().abs().amax(1).clamp(min=1e-12) / 127
            rounded = (weight / scales[:, None]).round()
            self.sums = rounded.sum(1) * scales  # (O,): what a row of ones would give
            self.product = onednn_int8(rounded.to(torch.int8), scales)
        else:
            self.packed = torch_private.pack(weight.to(self.dtype), ROWS)

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """Maps (..., I) -> (..., O); `activation`: None, relu or gelu (exact)."""
        if self.precision != "int8":
            return onednn_linear(x.to(self.dtype), self.packed, self.bias, activation)
        integers, scales, offsets = quantise(x.float())
        out = self.product(integers).mul_(scales).addcmul_(offsets, self.sums)
        if self.bias is not None:
            out += self.bias
        return activated(out, activation)


def quantise(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rounds each row of the (..., I) fp32 `x` to one of 255 equidistant values, 0 among them.

    Returns:
        (..., I) uint8 integers, (..., 1) scales and (..., 1) offsets: `x` is about integers x scales + offsets.
    """
    least, most = x.amin(-1, keepdim=True).clamp_(max=0), x.amax(-1, keepdim=True)
    # 254 steps, not 255: the zero is rounded too, and the largest integer must stay below 256
    scales = most.clamp_(min=0).sub_(least).clamp_(min=1e-35).div_(254)
    inverse = scales.reciprocal()
    zeros = least.mul_(inverse).round_()
    # half is added because the conversion truncates
    integers = torch.mul(x, inverse).add_(0.5 - zeros).to(torch.uint8)
    return integers, scales, zeros.mul_(scales)


def pack_linears(model: nn.Module, precision: str = "fp32") -> int:
    """Replaces every `Linear` on the CPU below `model` by a `PackedLinear`, in fp32 only where that is faster.

    Returns their number.
    """
    maps = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if isinstance(child, Linear) and _can_pack(child.weight, MIN_WEIGHT if precision == "fp32" else 0)
    ]
    for parent, name, child in maps:
        setattr(parent, name, PackedLinear(child, precision))
    return len(maps)


def _can_pack(weight: Tensor, smallest: int) -> bool:
    known = weight.dtype is torch.float32 or (weight.dtype is torch.bfloat16 and torch_private.BF16)
    return torch_private.ONEDNN and known and weight.device.type == "cpu" and weight.numel() >= smallest
