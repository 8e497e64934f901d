"""Fast implementations of attention, linear layers, the feed-forward network and the loss. They import torch only.

`naive.py` defines what each of them computes. The other packages call `attend`, `Linear` and the functions below, which
choose a kernel for each shape, data type and mode.
"""

from .attention import Windows, attend, attend_windows, prepare_mask
from .blocks import KeyBlocks, attend_blocks, key_blocks
from .linear import Linear, feed_forward
from .loss import chunked_label_smoothed_loss
from .naive import ACTIVATIONS
from .precision import CPU_PRECISIONS, PRECISIONS, check_precision, pack_linears, set_precision
