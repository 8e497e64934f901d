"""Absolute position embeddings, sinusoidal or learned, and the extension of learned ones to more positions.

The rows of a table are fairseq's: rows 0..pad belong to no position (row `pad` is zero), and position p is row
pad + 1 + p. Padding on either side has no position. Extension: `random` as in Rohde et al. 2021, section 4.1 ("from 512
to 3072"), `tile` as in Longformer, `repeat-last` as in Huang et al. 2021.

Legend: B rows, T tokens, C channels.
"""

import math

import torch
from torch import Tensor, nn

STRATEGIES = ("random", "tile", "repeat-last")


def position_rows(tokens: Tensor, pad: int) -> Tensor:
    """(B, T) token ids -> (B, T) rows of the position table; padding gets row `pad`."""
    real = tokens.ne(pad)
    return (real.cumsum(dim=1) * real) + pad


class LearnedPositions(nn.Embedding):
    """Learned position embeddings for up to `max_positions` tokens; `forward` takes rows of the table.

    Args:
        max_positions: longest document, in tokens.
        embed_dim: channels C.
        pad: id of the padding token (1 in fairseq).
    """

    def __init__(self, max_positions: int, embed_dim: int, pad: int) -> None:
        super().__init__(max_positions + pad + 1, embed_dim, padding_idx=pad)
        self.max_positions = max_positions
        nn.init.normal_(self.weight, std=embed_dim**-0.5)
        with torch.no_grad():
            self.weight[pad].zero_()


class SinusoidalPositions(nn.Module):
    """Fixed sines and cosines (Vaswani et al. 2017, section 3.5); as in fairseq, sines are the first half."""

    table: Tensor

    def __init__(self, max_positions: int, embed_dim: int, pad: int) -> None:
        super().__init__()
        self.max_positions, self.pad = max_positions, pad
        half = embed_dim // 2
        frequencies = torch.exp(torch.arange(half) * (-math.log(10000) / max(half - 1, 1)))
        angles = torch.arange(max_positions + pad + 1)[:, None] * frequencies
        table = torch.cat([angles.sin(), angles.cos(), angles.new_zeros(len(angles), embed_dim % 2)], dim=1)
        table[pad] = 0
        self.register_buffer("table", table, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """(...) rows of the table -> (..., C)."""
        return self.table[rows]


def extend_positions(
    pretrained: Tensor, fresh: Tensor, strategy: str, pad: int = 1, random_from: int | None = None
) -> Tensor:
    """A table of `fresh`'s length that begins with the pretrained rows.

    Args:
        pretrained: (pad + 1 + P, C) table of P positions.
        fresh: (pad + 1 + Q, C) newly initialised table, Q >= P; `random` takes its new rows from here.
        strategy: `random`, `tile` or `repeat-last`.
        random_from: first random position, `random` only (512 in the paper); default P, which keeps all pretrained
            rows.
    Raises:
        ValueError: unknown strategy, Q < P, different channels, or `random_from` outside 0..P.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"unknown strategy {strategy!r} for new positions; choose one of {', '.join(STRATEGIES)}")
    if pretrained.size(1) != fresh.size(1) or len(pretrained) > len(fresh):
        raise ValueError(f"cannot extend a position table of shape {list(pretrained.shape)} to {list(fresh.shape)}")
    first = pad + 1
    known = pretrained[first:]
    missing = len(fresh) - len(pretrained)
    if random_from is not None and (strategy != "random" or not 0 <= random_from <= len(known)):
        raise ValueError(
            f"random positions from {random_from}: only with strategy random (not {strategy}), from 0 to {len(known)}"
        )
    if strategy == "random":
        kept = first + (len(known) if random_from is None else random_from)
        return torch.cat([pretrained[:kept], fresh[kept:].to(pretrained)])
    if strategy == "tile":
        new = known.repeat(math.ceil(missing / len(known)), 1)[:missing]
    else:
        new = known[-1:].expand(missing, -1)
    return torch.cat([pretrained, new])
