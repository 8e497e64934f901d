"""Segment-wise and cross-segment layers: their dense definition, and rows of nothing but padding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import references
import torch
from helpers import assert_close, assert_same_run, outputs_and_gradients, padding
from layouts import segment_layout
from torch import Tensor

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.layers import EncoderLayer, LayerSizes
from hat_fairseq.modules.segments import SegmentAttention, SegmentLayer, parse_pattern

SIZES = LayerSizes(24, 40, 4, dropout=0.0, activation="gelu", layer_norm_eps=1e-3)
KINDS = pytest.mark.parametrize("kind", ["S", "D", "SD"])
L = 5


def states(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype).requires_grad_()


def layer_of(kind: str) -> SegmentLayer:
    torch.manual_seed(0)
    within = SegmentAttention(24, 4, segment_length=L) if "S" in kind else None
    layer = SegmentLayer(SIZES, within, FullAttention(24, 4) if "D" in kind else None)
    for name, parameter in layer.named_parameters():
        if "layer_norm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)
    return layer


def run(layer: SegmentLayer, x: Tensor, mask: Tensor, added: Tensor | None = None) -> Tensor:
    """(B, N, L, C) -> (B, N, L, C)."""
    layer.positions = None if added is None else lambda rows: added
    return layer(x.flatten(1, 2), segment_layout(mask)).view_as(x)


@KINDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("positions", [True, False], ids=["positions", "none"])
@pytest.mark.parametrize("documents", [[[1]], [[5]], [[5, 1], [4]], [[5, 5, 2], [1], [3, 5]]], ids=str)
def test_a_layer_is_its_definition(kind: str, dtype: torch.dtype, positions: bool, documents: list[list[int]]) -> None:
    """Batched and padded equals each document alone, segment by segment; `documents`: lengths of the segments."""
    layer = layer_of(kind).to(dtype)
    size = max(len(lengths) for lengths in documents)
    x = states(len(documents), size, L, 24, dtype=dtype)
    added = states(len(documents), size, 24, dtype=dtype)
    mask = torch.stack([padding(lengths + [0] * (size - len(lengths)), L) for lengths in documents])

    def dense() -> Tensor:
        rows = []
        for row, lengths in enumerate(documents):
            segments = [x[row, n, :length] for n, length in enumerate(lengths)]
            where = added[row, : len(lengths)] if positions else None
            rows += references.hierarchical_layer(layer, segments, where)
        return torch.cat(rows)

    inputs = [x, added] if positions and "D" in kind else [x]
    assert_same_run(layer, inputs, lambda: run(layer, x, mask, added if positions else None)[~mask], dense, dtype)


@KINDS
def test_no_mask_equals_a_mask_of_nothing(kind: str) -> None:
    layer, x = layer_of(kind), states(2, 3, L, 24)
    mask = torch.zeros(2, 3, L, dtype=torch.bool)
    layout = segment_layout(mask)
    assert layout.representatives is not None
    unpadded = BatchLayout(representatives=replace(layout.representatives, padding=None))
    assert_close(layer(x.flatten(1, 2), unpadded).view_as(x), run(layer, x, mask))


def test_one_segment_is_a_plain_encoder_layer() -> None:
    layer, x, mask = layer_of("S"), states(3, 1, L, 24), padding([5, 3, 1])
    plain = EncoderLayer(SIZES, FullAttention(24, 4))
    plain.load_state_dict(layer.segment_wise.state_dict())
    assert_close(run(layer, x, mask[:, None])[:, 0], plain(x[:, 0], BatchLayout(mask)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_of_nothing_but_padding_attends_uniformly(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    layer = EncoderLayer(SIZES, FullAttention(24, 4)).to(dtype)
    x, mask = states(2, L, 24, dtype=dtype), padding([3, 0], L)
    out, gradients = outputs_and_gradients(layer, [x], lambda: layer(x, BatchLayout(mask, empty_rows=True)))
    assert out.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients.values())
    attention, row = layer.self_attn, x[1]
    uniform = attention.out_proj(torch.stack([attention.v_proj(token) for token in row]).mean(0))
    hidden = layer.self_attn_layer_norm(row + uniform)
    expected = layer.final_layer_norm(hidden + references.feed_forward(layer, hidden))
    assert_close(out[1], expected.detach(), torch.float32 if dtype is torch.float32 else torch.bfloat16)
    assert_close(
        out[:1],
        layer(x[:1], BatchLayout(mask[:1])).detach(),
        torch.float32 if dtype is torch.float32 else torch.bfloat16,
    )


def test_layouts() -> None:
    assert parse_pattern("S|SD|D") == ["S", "SD", "D"]
    for wrong in ("", "S|", "S|DS", "s", "S,SD"):
        with pytest.raises(ValueError, match="unknown layer"):
            parse_pattern(wrong)
