"""Caches equal lists of keys, and copy as little as they say."""

import random

import torch

from hat_fairseq.modules.cache import GrowingCache, documents_in_order, expansion_factor, is_identity


def test_growing_cache_is_a_list_of_keys_under_any_reordering() -> None:
    torch.manual_seed(0)
    choose = random.Random(0)
    cache, expected = GrowingCache(), torch.empty(4, 2, 0, 3)
    for _ in range(80):
        new = torch.randn(expected.size(0), 2, 1, 3)
        expected = torch.cat([expected, new], dim=2)
        keys, values = cache.append(new, -new)
        assert torch.equal(keys, expected) and torch.equal(values, -expected)
        if choose.random() < 0.3:
            order = torch.tensor([choose.randrange(expected.size(0)) for _ in range(choose.randint(1, 5))])
            cache.reorder(order)
            expected = expected[order]


def test_growth_copies_linearly_often() -> None:
    cache, buffers = GrowingCache(), set()
    for _ in range(1000):
        keys, _ = cache.append(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1))
        buffers.add(keys.data_ptr())
    assert len(buffers) <= 8  # doubling from 32


def test_orders() -> None:
    assert is_identity(torch.tensor([0, 1, 2]), 3)
    assert not is_identity(torch.tensor([0, 1]), 3)
    assert not is_identity(torch.tensor([0, 2, 1]), 3)
    assert expansion_factor(torch.tensor([0, 0, 1, 1]), 2) == 2
    assert expansion_factor(torch.tensor([0, 1, 0, 1]), 2) == 1
    assert expansion_factor(torch.tensor([1, 0]), 2) == 1
    assert documents_in_order(torch.tensor([1, 0, 5, 5]), 2).tolist() == [0, 2]
    assert documents_in_order(torch.tensor([1, 2, 5, 5]), 2) is None
    assert documents_in_order(torch.tensor([1, 0, 5]), 2) is None
