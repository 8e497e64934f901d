"""Products of 8-bit integers that are exact on every processor.

Without VNNI instructions oneDNN adds pairs of products in 16 bits, where 255 x 127 + 255 x 127 becomes 32,767. Inputs
of 7 bits cannot get there. So the inputs are halved, x = floor(x / 2) + ceil(x / 2), and the two products are added:
the sums are the same, with twice the operations, and the weights are read once.

Legend: N rows (any number of leading axes), I inputs, O outputs.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from .torch_private import int8_product, pack_int8

Product = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@cache
def exact_product() -> Product:
    """`int8_product` or `product_of_halves`: the first that is exact here for the largest integers.

    Raises:
        ValueError: none is.
    """
    for product in (int8_product, product_of_halves):
        if all(_is_exact(product, rows) for rows in (1, 64)):
            return product
    raise ValueError("precision int8: torch's products of 8-bit integers are wrong on this processor; use fp32")


def product_of_halves(x: Tensor, packed: Tensor, scales: Tensor, zeros: Tensor) -> Tensor:
    """Arguments and result of `int8_product`."""
    rows = x.reshape(x.shape[:-1].numel(), x.size(-1))
    floor = rows >> 1
    first, second = int8_product(torch.cat([floor, rows - floor]), packed, scales, zeros).chunk(2)
    return first.add_(second).view(*x.shape[:-1], len(scales))


def _is_exact(product: Product, rows: int) -> bool:
    """The largest inputs with weights whose pairs overflow, come close to it, and cancel out."""
    x = torch.full((rows, 256), 255, dtype=torch.uint8)
    weight = torch.tensor([[127, 127], [-127, -127], [64, 65], [127, -127]]).repeat(16, 128)
    outputs = len(weight)
    packed = pack_int8(weight.to(torch.int8), rows)
    out = product(x, packed, torch.ones(outputs), torch.zeros(outputs, dtype=torch.int64))
    return torch.equal(out.long(), x.long() @ weight.t())  # sums below 2^24, which fp32 holds exactly
