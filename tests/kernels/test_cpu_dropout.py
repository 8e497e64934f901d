"""Masks drop at their rate; elements and blocks are independent of each other."""

import pytest
import torch

from hat_fairseq.kernels.cpu_dropout import BlockDropout


def masks(seed: int, size: int, rate: float, number: int) -> torch.Tensor:
    """(number, size) True = kept."""
    dropout, kept = BlockDropout(seed, size, rate), []
    for _ in range(number):
        dropout.advance()
        kept.append(dropout.drop(torch.ones(size), torch.empty(size)))
    stacked = torch.stack(kept)
    assert ((stacked == 0) | (stacked == 1)).all()
    return stacked.bool()


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.3, 0.5, 0.7, 0.999])
def test_the_rate_is_that_asked_for(rate: float) -> None:
    kept = masks(1, 4001, rate, 250)  # a million
    deviation = (rate * (1 - rate) / kept.numel()) ** 0.5
    assert abs((~kept).float().mean().item() - rate) < 5 * deviation


def test_blocks_and_neighbours_are_independent() -> None:
    """Over all pairs of 60 blocks, and of elements at distances up to 60, two are dropped together as often as by
    chance."""
    rate, size = 0.1, 40_000
    dropped = (~masks(2, size, rate, 60)).float() - rate
    variance = rate * (1 - rate)
    between_blocks = dropped @ dropped.t() / size / variance
    between_blocks.fill_diagonal_(0)
    assert between_blocks.abs().max() < 6 * size**-0.5
    for distance in range(1, 61):
        together = (dropped[:, distance:] * dropped[:, :-distance]).mean() / variance
        assert abs(together) < 6 * dropped.numel() ** -0.5, distance


def test_the_seed_decides() -> None:
    one, again, other = (masks(seed, 999, 0.4, 3) for seed in (5, 5, 6))
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert not torch.equal(one[0], one[1])


def test_it_works_in_place() -> None:
    dropout = BlockDropout(1, 60, 0.5)
    dropout.advance()
    x = torch.randn(5, 10)
    expected = dropout.drop(x, torch.empty(5, 10))
    assert dropout.drop(x, x) is x and torch.equal(x, expected)
    assert 0 < int((x == 0).sum()) < 50
