"""A step's attention is dense attention."""

from __future__ import annotations

import pytest
import torch
from helpers import assert_close
from torch import Tensor

from hat_fairseq.kernels.step_attention import MOST, step_attention, suits


def dense(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
    scores = q.float() @ k.float().transpose(-2, -1) / q.size(-1) ** 0.5
    if allowed is not None:
        scores = scores.masked_fill(~allowed, float("-inf"))
    return (scores.softmax(-1) @ v.float()).to(q.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("keys", [1, 2, 13, 64, 131])
@pytest.mark.parametrize("queries", [1, 4, MOST])
def test_step_attention_is_dense_attention(queries: int, keys: int, dtype: torch.dtype) -> None:
    torch.manual_seed(keys)
    q = torch.randn(3, 2, queries, 8, dtype=dtype)
    k, v = torch.randn(2, 3, 2, 150, 8, dtype=dtype)[..., :keys, :]  # a view of longer buffers
    padding = torch.arange(keys) < torch.tensor([keys, (keys + 1) // 2, 1])[:, None]
    own = torch.rand(3, 1, queries, keys) < 0.5
    own[..., 0] = True
    for allowed in (None, padding[:, None, None, :], own):
        assert_close(step_attention(q, k, v, allowed), dense(q, k, v, allowed), dtype)


def test_it_is_taken_for_a_few_queries_without_gradients_or_dropout() -> None:
    few, many = torch.randn(1, 1, MOST, 8), torch.randn(1, 1, MOST + 1, 8)
    assert not suits(few, 0.0)  # gradients are wanted
    with torch.no_grad():
        assert suits(few, 0.0)
        assert not suits(many, 0.0) and not suits(few, 0.1) and not suits(few.to("meta"), 0.0)
