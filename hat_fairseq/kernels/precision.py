"""Precision of inference, the same for every command that uses a trained model.

fp32   anywhere
fp16   on a GPU: the whole model
bf16   on a GPU: the whole model; on a CPU: linear layers only, see `packed_linear`
int8   on a CPU: linear layers only
"""

import torch
from torch import nn

from . import torch_private
from .exact_int8 import exact_product
from .packed_linear import pack_linears

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


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
            exact_product()
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
        model.to(_DTYPES[precision])


def chosen_precision(fp16: bool, bf16: bool, cpu_precision: str = "fp32") -> str:
    """One of `PRECISIONS`, from flags.

    Raises:
        ValueError: more than one precision is chosen.
    """
    names = [name for name, chosen in (("fp16", fp16), ("bf16", bf16)) if chosen]
    if cpu_precision not in ("fp32", *names):
        names.append(cpu_precision)
    if len(names) > 1:
        raise ValueError(f"choose one precision, not {' and '.join(names)}")
    return names[0] if names else "fp32"
