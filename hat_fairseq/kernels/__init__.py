"""Fast implementations of attention, linear layers, the feed-forward network and the loss. They import torch only.

`naive.py` defines what each of them computes. The other packages call `attend`, `Linear` and the functions below, which
choose a kernel for each shape, data type and mode.
"""

from .attention import attend, prepare_mask
from .block_attention import KeyBlocks, attend_blocks, key_blocks
from .chunked_loss import chunked_label_smoothed_loss
from .linear import Linear, feed_forward
from .naive import ACTIVATIONS
from .packed_linear import CPU_PRECISIONS, pack_linears
from .precision import PRECISIONS, check_precision, chosen_precision, set_precision
from .windows import Windows, attend_windows

__all__ = [
    "ACTIVATIONS",
    "CPU_PRECISIONS",
    "PRECISIONS",
    "KeyBlocks",
    "Linear",
    "Windows",
    "attend",
    "attend_blocks",
    "attend_windows",
    "check_precision",
    "chosen_precision",
    "chunked_label_smoothed_loss",
    "feed_forward",
    "key_blocks",
    "pack_linears",
    "prepare_mask",
    "set_precision",
]
