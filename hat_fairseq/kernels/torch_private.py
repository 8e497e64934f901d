"""All private operators of torch that the package calls, each with a public equivalent. Checked with torch 2.13.

A public equivalent is numerically equivalent and slower. It replaces an operator that the installed torch lacks, and
all of them if the environment variable `HAT_PUBLIC_OPERATORS` is 1.

Legend: I inputs, O outputs.
"""

import operator
import os
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import naive

ROWS = 512  # the number of rows that weights are laid out for; the layout is as good for 4 and for 3,000
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
# FBGEMM's products of integers; torch.backends.quantized.engine says which library makes the layout.
_fbgemm_prepack = _find("quantized.linear_prepack")
_fbgemm_linear = _find("quantized.linear_with_input_q_dq_qweight_dq_output_fp32")
_per_channel: Any = getattr(torch, "_make_per_channel_quantized_tensor", None)
# SDPA on the CPU, which also returns the logarithms of the sums of the softmax, and its gradients from these.
flash_attention = _find("aten._scaled_dot_product_flash_attention_for_cpu")
flash_attention_backward = _find("aten._scaled_dot_product_flash_attention_for_cpu_backward")

# Whether both can be called; otherwise the backward pass computes SDPA again.
FLASH = flash_attention is not None and flash_attention_backward is not None
# Whether oneDNN multiplies fp32, int8 and bf16.
ONEDNN = _linear_pointwise is not None and _reorder_linear_weight is not None
INT8 = ONEDNN and _qlinear_prepack is not None and _qlinear_pointwise is not None
FBGEMM = "fbgemm" in torch.backends.quantized.supported_engines and None not in (
    _fbgemm_prepack,
    _fbgemm_linear,
    _per_channel,
)
BF16 = ONEDNN and _is_bf16_supported is not None and _is_bf16_supported()


def onednn_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """Maps (..., I) and a (O, I) weight, plain or packed -> (..., O); `activation`: None, relu or gelu (exact)."""
    if not ONEDNN:
        return naive.linear(x, weight, bias, activation)
    return _linear_pointwise(x, weight, bias, activation or "none", [], "none" if activation == "gelu" else "")


def pack(weight: Tensor, rows: int) -> Tensor:
    """Lays out the (O, I) weight, fp32 or bf16, for oneDNN's products with about `rows` rows."""
    return _reorder_linear_weight(weight, rows) if ONEDNN else weight


def onednn_int8(integers: Tensor, scales: Tensor) -> IntegerProduct:
    """The product with a (O, I) int8 weight, whose outputs have (O,) fp32 scales."""
    if not INT8:
        return lambda x: F.linear(x.float(), integers.float()) * scales
    packed = _qlinear_prepack(integers, [ROWS, integers.size(1)])
    zeros = torch.zeros(len(integers), dtype=torch.int64)
    return lambda x: _qlinear_pointwise(x, 1.0, 0, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")


def fbgemm_int8(integers: Tensor, scales: Tensor) -> IntegerProduct:
    """The same by FBGEMM, to the last bit; its layout takes longer to make."""
    engine = torch.backends.quantized.engine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # tensors of quantised types are to leave torch one day
        weight = _per_channel(integers, scales.double(), torch.zeros(len(integers), dtype=torch.int64), 0)
    try:
        torch.backends.quantized.engine = "fbgemm"
        packed = _fbgemm_prepack(weight, None)
    finally:
        torch.backends.quantized.engine = engine

    def product(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.size(-1)).float()
        out = _fbgemm_linear(rows, 1.0, 0, packed) if len(rows) else rows.new_empty(0, len(integers))
        return out.view(*x.shape[:-1], len(integers))

    return product


# Products of uint8 inputs and int8 weights by the name of their library.
INT8_PRODUCTS: dict[str, Callable[[Tensor, Tensor], IntegerProduct]] = {"onednn": onednn_int8}
if FBGEMM:
    INT8_PRODUCTS["fbgemm"] = fbgemm_int8
