"""Rotary positions: the rotation of complex numbers, of which only differences of positions count."""

import pytest
import references
import torch

from hat_fairseq.kernels import rotate


@pytest.mark.parametrize(("theta", "factor"), [(10000.0, 1.0), (160000.0, 1.0), (100.0, 1.5)])
def test_channels_turn_as_complex_numbers(theta: float, factor: float) -> None:
    x = torch.randn(2, 3, 700, 8)
    expected = torch.stack([torch.stack([references.turned(head, theta, factor) for head in row]) for row in x])
    torch.testing.assert_close(rotate(x, theta, factor=factor), expected, atol=5e-4, rtol=0)  # angles in fp32


def test_scores_depend_on_differences_alone() -> None:
    queries, keys = torch.randn(2, 1, 4, 50, 16, dtype=torch.double).unbind()
    near, far = (torch.arange(50).expand(1, -1) + first for first in (0, 1000))
    first = rotate(queries, 1000.0, near) @ rotate(keys, 1000.0, near).mT
    torch.testing.assert_close(first, rotate(queries, 1000.0, far) @ rotate(keys, 1000.0, far).mT, atol=1e-3, rtol=0)
    assert torch.equal(rotate(queries, 1000.0), rotate(queries, 1000.0, near))
    assert torch.equal(rotate(queries, 1000.0, torch.zeros(1, 50)), queries)


def test_the_type_stays() -> None:
    """And is that of the result alone: angles, and what they turn, are in fp32."""
    x = torch.randn(1, 2, 700, 16).bfloat16()
    assert torch.equal(rotate(x, 100.0, factor=1.5), rotate(x.float(), 100.0, factor=1.5).bfloat16())
