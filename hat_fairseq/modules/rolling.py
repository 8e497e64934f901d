"""Rolling: a cyclic shift of each document's tokens, while the pattern of the sparse attention stays in place.

Liu et al. 2022 (ERNIE-Sparse), section 3.3 and A.4: the same input with another attention topology. Token i of n moves
to the position of token (i + k) mod n. Padding does not move, so the result does not depend on other documents of the
batch. With full attention rolling changes nothing. O(T log T), no host-device synchronisation.

Legend: B documents, T tokens of the input, T' positions in the layers, C channels.
"""

import torch
from torch import Tensor

from .batch_layout import BatchLayout


def rolled(x: Tensor, layout: BatchLayout, shift: int) -> Tensor:
    """(B, T', C) states with those of each document's tokens moved by `shift` places; `-shift` moves them back.

    Args:
        layout: with `blocks`, the tokens are at these slots, and all other positions stay in place; without, all
            positions but padding are tokens.
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
    # Positions of the tokens, in order; then, for padding, the position `length`, which is removed below.
    tokens = slots.sort(dim=1).values
    count = tokens.lt(length).sum(dim=1, keepdim=True)
    rank = torch.arange(tokens.size(1), device=x.device)
    moved = torch.where(rank < count, (rank + shift) % count.clamp(min=1), rank)
    spare = torch.cat([positions, positions.new_full((len(x), 1), length)], dim=1)
    return spare.scatter(1, tokens.gather(1, moved), tokens)[:, :length]
