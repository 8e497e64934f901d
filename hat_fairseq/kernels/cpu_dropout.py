"""Cheap random masks for dropping attention weights on the CPU, the same again from the same seed.

torch draws dropout masks on the CPU one number after the other, which takes longer than the attention itself. Here
every entry of a block is a lane with a generator of its own: x <- a x + c modulo 2^32 (a linear congruential generator,
its multiplier from L'Ecuyer 1999), from a start that torch's generator draws. One step of all lanes gives the mask of
the next block; its lanes are independent of each other, and the high bits, which decide, are a lane's good ones.

A mask is never written: the bits of a lane are read as a float (without the exponent's highest bit, so that there is
neither infinity nor NaN), and a comparison with a threshold of known probability and the multiplication are one
operation of torch.

O(1) passes over a block; memory of two blocks.
"""

from __future__ import annotations

import torch
from torch import Tensor

MULTIPLIER, INCREMENT = 1597334677, 12345
_EXPONENT = 1 << 30  # the highest bit of a float's exponent


class DropoutLanes:
    """Masks of blocks, in the order of `advance`.

    Args:
        seed: of torch's generator that starts the lanes.
        size: entries of the largest block.
        rate: probability with which an entry is dropped, 0 < rate < 1.
    """

    def __init__(self, seed: int, size: int, rate: float) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._lanes = torch.empty(size, dtype=torch.int32).random_(-(2**31), 2**31 - 1, generator=generator)
        self._floats = torch.empty(size, dtype=torch.int32)
        self._threshold = threshold(rate)

    def advance(self) -> None:
        """Goes on to the mask of the next block."""
        self._lanes.mul_(MULTIPLIER).add_(INCREMENT)
        torch.bitwise_and(self._lanes, ~_EXPONENT, out=self._floats)

    def drop(self, x: Tensor, out: Tensor) -> Tensor:
        """`x`, contiguous fp32, with 0 where the current mask drops; into `out`, which may be `x`."""
        floats = self._floats[: x.numel()].view(torch.float32).view(x.shape)
        return torch.ops.aten.threshold_backward.grad_input(x, floats, self._threshold, grad_input=out)


def threshold(rate: float) -> float:
    """The float that a random one (random sign, exponent below 128, random mantissa) does not exceed at this rate.

    Floats of one sign are ordered as their bits are, 2^30 of each sign.
    """
    below = round(rate * 2**31)
    bits = _EXPONENT - below if below <= _EXPONENT else below - _EXPONENT
    value = torch.tensor(bits, dtype=torch.int32).view(torch.float32).item()
    return -value if below <= _EXPONENT else value
