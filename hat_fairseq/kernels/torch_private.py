"""All private operators of torch that the package calls, and their public equivalents. Checked with torch 2.13.

A public equivalent is numerically equivalent and slower. It replaces an operator that the installed torch lacks, and
all of them if the environment variable `HAT_PUBLIC_OPERATORS` is 1. Products of integers have none: int8 is refused.

Legend: I inputs, O outputs.
"""

import operator
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from . import naive

ROWS = 512  # of inputs, a hint for the layout of weights; as fast for 4 as for 3,000 rows
IntegerProduct = Callable[[Tensor], Tensor]  # (..., I) uint8 -> (..., O) fp32
# oneDNN and torch's layer above it keep a kernel for each shape, 1,024 of each kind: 0.7 GB after 400 lengths of
# documents. Both read their limit when they are first used.
for _name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_name, "64")


def _find(name: str) -> Any:
    """The operator `torch.ops.<name>`, or None for its public equivalent."""
    public = os.environ.get("HAT_PUBLIC_OPERATORS") == "1"
    if public or not name.startswith("aten.") and not torch.backends.mkldnn.is_available():
        return None
    try:
        return operator.attrgetter(name)(torch.ops)
    except AttributeError:
        return None


_linear_pointwise = _find("mkldnn._linear_pointwise")
_reorder_linear_weight = _find("mkldnn._reorder_linear_weight")
_is_bf16_supported = _find("mkldnn._is_mkldnn_bf16_supported")
_qlinear_prepack = _find("onednn.qlinear_prepack")
_qlinear_pointwise = _find("onednn.qlinear_pointwise")
# SDPA on the CPU, which also returns the logarithms of the sums of the softmax, and its gradients from these.
flash_attention = _find("aten._scaled_dot_product_flash_attention_for_cpu")
flash_attention_backward = _find("aten._scaled_dot_product_flash_attention_for_cpu_backward")

_amx = getattr(torch.cpu, "_is_amx_tile_supported", None)
_avx512_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", None)

# Whether both can be called; otherwise the backward pass computes SDPA again.
FLASH = flash_attention is not None and flash_attention_backward is not None
# Whether oneDNN multiplies fp32, int8 and bf16.
ONEDNN = _linear_pointwise is not None and _reorder_linear_weight is not None
INT8 = ONEDNN and _qlinear_prepack is not None and _qlinear_pointwise is not None
BF16 = ONEDNN and _is_bf16_supported is not None and _is_bf16_supported()


def is_bf16_fast() -> bool:
    """Returns whether the CPU has instructions that multiply bf16 (AMX or AVX512-BF16); without, fp32 is faster."""
    return BF16 and any(known is not None and known() for known in (_amx, _avx512_bf16))


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """Maps (..., I) and a (O, I) weight, plain or packed -> (..., O); `activation`: None, relu or gelu (exact)."""
    if not ONEDNN:
        return naive.linear(x, weight, bias, activation)
    return _linear_pointwise(x, weight, bias, activation or "none", [], "none" if activation == "gelu" else "")


def pack(weight: Tensor, rows: int) -> Tensor:
    """Lays out the (O, I) weight, fp32 or bf16, for oneDNN's products with about `rows` rows."""
    return _reorder_linear_weight(weight, rows) if ONEDNN else weight


def onednn_int8(integers: Tensor, scales: Tensor) -> IntegerProduct:
    """Returns the product with a (O, I) int8 weight, whose outputs have (O,) fp32 scales. See `multiplies_int8`."""
    packed = _qlinear_prepack(integers, [ROWS, integers.size(1)])
    zeros = torch.zeros(len(integers), dtype=torch.int64)
    return lambda x: _qlinear_pointwise(x, 1.0, 0, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")


@cache
def multiplies_int8() -> bool:
    """Returns whether `onednn_int8` can be called and gives right products, which needs VNNI instructions.

    Without them oneDNN adds pairs of products in 16 bits, where 255 x 127 + 255 x 127 becomes 32,767. A product tells
    which instructions oneDNN has here: torch does not know the variable ONEDNN_MAX_CPU_ISA.
    """
    if not INT8:
        return False
    weight, x = torch.full((16, 64), 127, dtype=torch.int8), torch.full((16, 64), 255, dtype=torch.uint8)
    return bool(onednn_int8(weight, torch.ones(16))(x).eq(64 * 255 * 127).all())
