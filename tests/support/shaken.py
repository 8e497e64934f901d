"""Matrix products as they are on another processor: each has a relative error of one unit in the last place.

The sign of the error depends on the shapes, so equal products of equal shapes stay equal, and the same rows beside
others do not: as on processors where the bits of a row depend on how many rows there are. A test that fails only then
(`make test-processors`) asks for bits that nobody promises.
"""

import warnings
import zlib
from typing import Any

import torch
from torch import Tensor

ATEN = "mm mm.out addmm addmm.out addmm_ bmm bmm.out baddbmm baddbmm.out baddbmm_ addmv addmv.out dot _addmm_activation"
ATEN += " _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward"
_LIBRARY: list[torch.library.Library] = []  # which undoes its changes when it is collected


def install() -> None:
    """Replaces torch's products on the CPU in this process, once."""
    if _LIBRARY:
        return
    warnings.filterwarnings("ignore", "(?s).*Overriding a previously registered kernel", UserWarning)
    _LIBRARY.append(torch.library.Library("aten", "IMPL"))
    for name in ATEN.split():
        kernel = torch.library.get_kernel(f"aten::{name}", "CPU").call_boxed
        _LIBRARY[0].impl(name, shaken(kernel), "CPU", with_keyset=True)
    # Of packed weights; products of integers are the same everywhere.
    torch.ops.mkldnn._linear_pointwise = shaken(torch.ops.mkldnn._linear_pointwise)


def shaken(product: Any) -> Any:
    """The product with an error in each of its outputs."""

    def run(*arguments: Any, **options: Any) -> Any:
        shapes = [tuple(each.shape) for each in arguments if isinstance(each, Tensor)]
        sign = 1 if zlib.crc32(repr(shapes).encode()) % 2 else -1
        outputs = product(*arguments, **options)
        with torch.no_grad():
            for out in outputs if isinstance(outputs, tuple) else (outputs,):
                if isinstance(out, Tensor) and out.is_floating_point():
                    out.mul_(1 + sign * torch.finfo(out.dtype).eps)
        return outputs

    return run
