"""Fast, reproducible dropout masks for attention on the CPU: one linear congruential generator (LCG) per element.

torch draws dropout masks on the CPU one number after the other, which takes longer than the attention itself. Here
every element of a block has a generator x <- a x + c modulo 2^32 (multiplier from L'Ecuyer 1999), started from torch's
generator. One vectorised step of all generators gives the mask of the next block. The generators are independent of
each other, and the high bits, which decide, are the good ones of an LCG.

No mask is written: the bits are read as a float (without the highest bit of the exponent, which excludes infinity and
NaN), and one operator of torch compares it with a threshold of known probability and multiplies.

O(1) passes over a block; memory of two blocks.
"""

import torch
from torch import Tensor

from .torch_private import keep_above

MULTIPLIER, INCREMENT = 1597334677, 12345
_EXPONENT = 1 << 30  # the highest bit of a float's exponent


class BlockDropout:
    """Dropout masks for one block after the other.

    Args:
        seed: of torch's generator that starts the generators of the elements.
        size: elements of the largest block.
        rate: probability with which an element is dropped, 0 < rate < 1.
    """

    def __init__(self, seed: int, size: int, rate: float) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._states = torch.empty(size, dtype=torch.int32).random_(-(2**31), 2**31 - 1, generator=generator)
        self._floats = torch.empty(size, dtype=torch.int32)
        self._threshold = threshold(rate)

    def advance(self) -> None:
        """Draws the mask of the next block."""
        self._states.mul_(MULTIPLIER).add_(INCREMENT)
        torch.bitwise_and(self._states, ~_EXPONENT, out=self._floats)

    def drop(self, x: Tensor, out: Tensor) -> Tensor:
        """`x`, contiguous fp32, with 0 where the current mask drops; into `out`, which may be `x`."""
        floats = self._floats[: x.numel()].view(torch.float32).view(x.shape)
        return keep_above(x, floats, self._threshold, out)


def threshold(rate: float) -> float:
    """The float that a random one (random sign, exponent below 128, random mantissa) does not exceed at this rate.

    Floats of one sign are ordered as their bits are, 2^30 of each sign.
    """
    below = round(rate * 2**31)
    bits = _EXPONENT - below if below <= _EXPONENT else below - _EXPONENT
    value = torch.tensor(bits, dtype=torch.int32).view(torch.float32).item()
    return -value if below <= _EXPONENT else value
