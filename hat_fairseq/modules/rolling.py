"""Rolling: the tokens of each document move by some places, and the pattern of a sparse attention stays.

Liu et al. 2022 (ERNIE-Sparse), section 3.3 and A.4: the same input under another attention topology. Token i of n moves
to where token (i + k) mod n stood. Padding does not move and no document reads another one, so the result does not
depend on batch mates. Under full attention rolling changes nothing. O(T log T), no host-device synchronisation.

Legend: B documents, T tokens of the input, T' positions in the layers, C channels.
"""

import torch
from torch import Tensor

from .batch_layout import BatchLayout


def rolled(x: Tensor, layout: BatchLayout, shift: int) -> Tensor:
    """(B, T', C) states with those of each document's tokens moved by `shift` places; `-shift` moves them back.

    Args:
        layout: says which positions are tokens: with `blocks` their slots, and whatever else stands in the sequence
            stays in place; without, all that is no padding.
    """
    index = sources(x, layout, shift).unsqueeze(-1)
    return x.gather(1, index.expand_as(x))


def sources(x: Tensor, layout: BatchLayout, shift: int) -> Tensor:
    """(B, T') the position whose state each position of (B, T', C) states takes over."""
    length = x.size(1)
    positions = torch.arange(length, device=x.device).expand(len(x), length)
    if layout.blocks is not None:
        slots = layout.blocks.slots
    else:
        slots = positions if layout.padding is None else positions.masked_fill(layout.padding, length)
    # The tokens' positions in their order; behind them, for padding, a position that is cut off below.
    tokens = slots.sort(dim=1).values
    count = tokens.lt(length).sum(dim=1, keepdim=True)
    rank = torch.arange(tokens.size(1), device=x.device)
    moved = torch.where(rank < count, (rank + shift) % count.clamp(min=1), rank)
    spare = torch.cat([positions, positions.new_full((len(x), 1), length)], dim=1)
    return spare.scatter(1, tokens.gather(1, moved), tokens)[:, :length]
