"""Precision of inference: the whole model on a GPU, linear maps on a CPU, with weights in oneDNN's own layout.

    fp32   anywhere; on a CPU packed maps: numerically equivalent to `nn.Linear`, 2 to 5 times as fast as MKL for the
           few rows of a decoding step
    fp16   on a GPU
    bf16   anywhere; on a CPU weights and inputs rounded to 8 bits of mantissa, sums in fp32, results in bf16
    int8   on a CPU: weights as 8-bit integers with a scale for each output, inputs with a scale and a zero for each
           row, so that a row's result does not depend on the other rows of a batch; results in fp32. Without VNNI
           instructions weights have 7 bits. The faster library is chosen (`choice.py`); all give the same results

On a CPU layer norms, residuals, softmaxes and embeddings stay in fp32.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor, nn

from . import choice, torch_private
from .linear import FEW_ROWS, MIN_WEIGHT, TIMED_ROWS, TIMED_WIDTH, Linear
from .naive import activated
from .torch_private import INT8_PRODUCTS, onednn_linear

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
CPU_PRECISIONS = ("fp32", "bf16", "int8")
ROWS = 512  # the number of rows that weights are laid out for; the layout is as good for 4 and for 3,000


def check_precision(precision: str, device: torch.device | str) -> None:
    """Raises ValueError if `precision` is unknown, not supported natively by `device`, or wrong there."""
    kind = torch.device(device).type
    if precision not in PRECISIONS:
        raise ValueError(f"unknown precision {precision!r}; choose one of {', '.join(PRECISIONS)}")
    if precision == "fp32":
        return
    if kind == "cpu":
        if precision == "fp16":
            raise ValueError("precision fp16 is GPU-only; on a CPU use bf16 or int8")
        if not torch_private.INT8:
            raise ValueError(f"precision {precision} needs a torch with oneDNN; this one has none: use fp32")
        if precision == "bf16" and not torch_private.BF16:
            raise ValueError("precision bf16: this CPU cannot multiply bf16; use int8 or fp32")
        if precision == "int8":
            largest_weight()
    elif precision == "int8":
        raise ValueError(f"precision int8 is CPU-only (device: {device}); on a GPU use fp16 or bf16")
    elif precision == "bf16" and kind == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ValueError("precision bf16: this GPU cannot multiply bf16; use fp16 or fp32")


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


class PackedLinear(nn.Module):
    """A linear map that can no longer be trained, moved or saved.

    Args:
        source: a map on the CPU, fp32 (or bf16, which stays bf16); it is not changed.
        precision: one of `CPU_PRECISIONS`.
    """

    def __init__(self, source: nn.Linear, precision: str = "fp32") -> None:
        super().__init__()
        weight = source.weight.detach()
        self.precision = "bf16" if weight.dtype is torch.bfloat16 else precision
        self.dtype = torch.bfloat16 if self.precision == "bf16" else torch.float32  # of inputs and outputs
        self.rounds_inputs = self.precision == "int8"  # see `Linear`, as for the next one
        # without bf16 instructions products of bf16 are slower than those of fp32
        narrow = self.precision != "fp32" and torch_private.BF16
        self.cache_dtype = torch.bfloat16 if narrow else torch.float32
        self.bias = None if source.bias is None else source.bias.detach().to(self.dtype)
        if self.precision == "int8":
            # symmetric, so that the weights' zero is 0
            scales = weight.float().abs().amax(1).clamp(min=1e-12) / largest_weight()
            integers = (weight / scales[:, None]).round()
            self.sums = integers.sum(1) * scales  # (O,): what a row of ones would give
            few, many = fastest_integer_products()
            self.few_rows = INT8_PRODUCTS[few](integers.to(torch.int8), scales)
            self.many_rows = self.few_rows if few == many else INT8_PRODUCTS[many](integers.to(torch.int8), scales)
        else:
            self.packed = torch_private.pack(weight.to(self.dtype), ROWS)

    def forward(self, x: Tensor, activation: str | None = None) -> Tensor:
        """Maps (..., I) -> (..., O); `activation`: None, relu or gelu (exact)."""
        if self.precision != "int8":
            return onednn_linear(x.to(self.dtype), self.packed, self.bias, activation)
        integers, scales, offsets = quantise(x.float())
        product = self.few_rows if x.shape[:-1].numel() <= FEW_ROWS else self.many_rows
        out = product(integers)
        out = out.mul_(scales).addcmul_(offsets, self.sums)
        if self.bias is not None:
            out += self.bias
        return activated(out, activation)


def quantise(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rounds each row of the (..., I) fp32 `x` to one of 255 equidistant numbers, 0 among them.

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


def fastest_integer_products() -> tuple[str, str]:
    """Returns the libraries that multiply few and many rows faster."""

    def timed(rows: int) -> dict[str, Callable[[], Tensor]]:
        names = [name for name in INT8_PRODUCTS if _is_exact(name, largest_weight())]
        x, weight = (torch.ones(n, TIMED_WIDTH, dtype=torch.uint8) for n in (rows, 4 * TIMED_WIDTH))
        products = {name: INT8_PRODUCTS[name](weight.to(torch.int8), torch.ones(len(weight))) for name in names}
        return {name: partial(product, x) for name, product in products.items()}

    few, many = (choice.fastest(f"int8_{rows}", partial(timed, TIMED_ROWS[rows])) for rows in TIMED_ROWS)
    return few, many


@cache
def largest_weight() -> int:
    """Returns the largest integer of a weight with which torch's products are exact.

    Without VNNI instructions pairs of products are added in 16 bits: 255 x 127 + 255 x 127 would become 32,767, and
    255 x 64 + 255 x 64 = 32,640 is the most that fits.

    Raises:
        ValueError: there is none.
    """
    for largest in (127, 64):
        if _is_exact("onednn", largest):
            return largest
    raise ValueError("precision int8: torch's products of 8-bit integers are wrong on this processor; use fp32")


def _is_exact(name: str, largest: int) -> bool:
    """The largest inputs with weights whose pairs are largest, come close to it, and cancel out."""
    half = largest // 2 + 1
    weight = torch.tensor([[largest, largest], [-largest, -largest], [half, half], [largest, -largest]]).repeat(16, 128)
    product = INT8_PRODUCTS[name](weight.to(torch.int8), torch.ones(len(weight)))
    for rows in (1, 64):
        x = torch.full((rows, 256), 255, dtype=torch.uint8)
        if not torch.equal(product(x).long(), x.long() @ weight.t()):  # sums below 2^24, which fp32 holds exactly
            return False
    return True
