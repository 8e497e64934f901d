"""Which tokens attend to which, by the papers' definitions. `draw_attention.py` draws them, tests compare with them.

Positions are counted from the first token of a document. Padding is left to the caller.
"""

from functools import singledispatch
from typing import Any

import torch
from torch import Tensor

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.block_sparse import BlockSparseAttention, visible_blocks
from hat_fairseq.modules.pooling_attention import PoolingAttention
from hat_fairseq.modules.segments import SegmentAttention
from hat_fairseq.modules.sliding_window import SlidingWindowAttention


@singledispatch
def attends_to(attention: Any, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
    """Returns whether positions `query` attend to positions `key`; NotImplementedError for an unknown attention.

    The result has the shape to which both broadcast, with (B, ...) before it where it depends on the document, and
    (B, H, ...) where it also depends on the head.
    """
    raise NotImplementedError(f"no definition of {type(attention).__name__}")


@attends_to.register
def full(attention: FullAttention, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
    """Allows all pairs."""
    return (query >= 0) & (key >= 0)


@attends_to.register
def segments(attention: SegmentAttention, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
    """Allows pairs within a segment."""
    inside = query // attention.segment_length == key // attention.segment_length
    return inside if attention.window is None else inside & ((query - key).abs() <= attention.window)


@attends_to.register
def window(attention: SlidingWindowAttention, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
    """Allows the window, global keys, and for global queries all (Zhang et al. 2021, equation 12)."""
    near = (query - key).abs() <= attention.window
    if layout.global_tokens is None:
        return near
    return near | is_global(layout, query) | is_global(layout, key)


def is_global(layout: BatchLayout, positions: Tensor) -> Tensor:
    """Returns whether positions of any shape are global tokens, (B, ...)."""
    assert layout.global_tokens is not None
    where = layout.global_tokens.positions
    return (where.view(*where.shape, *[1] * positions.dim()) == positions).any(dim=1)


@attends_to.register
def pooling(attention: PoolingAttention, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
    """Allows the window of the first level, and the tokens of the cells that the second level sees."""
    allowed = window(attention, query, key, layout)
    for place in range(attention.level.kernel):  # of the key in a cell
        first = key - place
        allowed = allowed | ((first >= 0) & attention.sees(query, first))
    return allowed


@attends_to.register
def block_sparse(attention: BlockSparseAttention, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
    """Allows the blocks that the head sees, global blocks, and all in a short document; (B, H, ...).

    Without padding a document ends with the last key.
    """
    length = int(max(query.max(), key.max())) + 1
    lengths = [length] if layout.padding is None else (~layout.padding).sum(dim=1).tolist()
    numbers = [-(-length // attention.pattern.block) for length in lengths]
    return torch.stack([_blocks(attention, query, key, number) for number in numbers])


def _blocks(attention: BlockSparseAttention, query: Tensor, key: Tensor, number: int) -> Tensor:
    """(H, ...) in a document of this number of blocks."""
    pattern = attention.pattern
    query, key = torch.broadcast_tensors(query // pattern.block, key // pattern.block)
    seen = torch.ones(attention.num_heads, number, number, dtype=torch.bool)
    if number > pattern.dense:
        table = visible_blocks(pattern, number, attention.num_heads, attention.seed)  # H x N x K, -1: none
        seen = (table.unsqueeze(3) == torch.arange(number)).any(dim=2)
        seen[:, : pattern.first] = True
        seen[:, number - pattern.last :] = True
    inside = (query < number) & (key < number)
    return inside & seen[:, query.clamp(max=number - 1), key.clamp(max=number - 1)]
