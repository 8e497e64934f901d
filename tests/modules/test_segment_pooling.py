"""Pooling of segments: each document alone, by its definition."""

from __future__ import annotations

import pytest
import torch
from helpers import assert_close, assert_same_run, padding
from torch import Tensor

from hat_fairseq.modules.heads import POOLINGS, SegmentPooling

COUNTS = [4, 1, 3]


def definition(module: SegmentPooling, segments: Tensor) -> Tensor:
    """(N, C) segments of one document -> (C,)."""
    if module.pooling == "attentive":
        scores = torch.stack([torch.tanh(module.score.weight[0] @ module.projection(segment)) for segment in segments])
        return (scores.exp() / scores.exp().sum()) @ segments
    choices = {
        "max": segments.max(0).values,
        "min": segments.min(0).values,
        "first": segments[0],
        "last": segments[-1],
        "mean": segments.mean(0),
    }
    return choices[module.pooling]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_is_its_definition_whatever_stands_in_padding(pooling: str) -> None:
    torch.manual_seed(0)
    module = SegmentPooling(pooling, 8)
    x, mask = torch.randn(3, 4, 8, requires_grad=True), padding(COUNTS)

    def dense() -> Tensor:
        return torch.stack([definition(module, x[row, :count]) for row, count in enumerate(COUNTS)])

    assert_same_run(module, [x], lambda: module(x, mask), dense)
    other = torch.where(mask.unsqueeze(-1), 1e4, x)
    assert torch.equal(module(other, mask), module(x, mask))
    assert_close(module(x[:, :1], mask[:, :1]), x[:, 0])
