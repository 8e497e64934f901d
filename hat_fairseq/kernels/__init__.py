"""Fast implementations of attention, linear layers, the feed-forward network and the loss. They import torch only.

`naive.py` defines what each of them computes. The other packages call `attend`, `Linear` and the functions below, which
choose a kernel by shape, data type, mode and instruction set, never by measured time.
"""

from .attention import Windows, attend, attend_windows, prepare_mask
from .blocks import KeyBlocks, attend_blocks, key_blocks
from .feed_forward import feed_forward
from .loss import chunked_label_smoothed_loss
from .naive import ACTIVATIONS, GATED, rotate
from .precision import (
    AUTO,
    CPU_PRECISIONS,
    PRECISIONS,
    Linear,
    PackedLinear,
    check_precision,
    choose_precision,
    cpu_precisions,
    pack_linears,
    set_precision,
)
