"""Segments of documents: where tokens go, the layers, and the poolings, each against its definition."""

import pytest
import references
import torch
import torch.nn.functional as F
from building import BOS, PAD
from helpers import assert_close, assert_same_run, outputs_and_gradients, padding, states
from layouts import segment_layout
from torch import Tensor

from hat_fairseq.modules.attention import AttentionSizes, FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout, Slots
from hat_fairseq.modules.heads import DOCUMENT_POOLINGS, PooledClassificationHead
from hat_fairseq.modules.layers import EncoderLayer, LayerSizes
from hat_fairseq.modules.segments import (
    SegmentAttention,
    SegmentLayer,
    arrange_segments,
    slots_at_markers,
    slots_of_length,
)

SIZES = LayerSizes(24, 40, 4, dropout=0.0, activation="gelu", layer_norm_eps=1e-3)
L = 5


def segments_of(tokens: Tensor, slots: Slots) -> Tensor:
    return slots.scatter(tokens, PAD).unflatten(1, (-1, L))


def check_round_trip(tokens: Tensor, slots: Slots) -> None:
    ids = segments_of(tokens, slots)
    assert ids.shape == (len(tokens), slots.size // L, L)
    assert int(ids.ne(PAD).sum()) == int(tokens.ne(PAD).sum())
    batch = arrange_segments(tokens, slots, L, PAD)
    layout, where = batch.layout, batch.layout.representatives
    assert (layout.padding is not None) == bool(ids.eq(PAD).any())
    assert layout.empty_rows == (where.padding is not None) == bool(ids.eq(PAD).all(dim=2).any())
    assert torch.equal(batch.tokens, ids.flatten(1))
    expected = torch.arange(L).expand_as(ids) + PAD + 1
    assert torch.equal(batch.rows, expected.masked_fill(ids.eq(PAD), 0).flatten(1))
    x = torch.stack([ids, ids * 10], dim=-1)
    back = slots.gather(x.flatten(1, 2))
    expected = torch.where(tokens == PAD, 0, tokens)
    assert torch.equal(back, torch.stack([expected, expected * 10], dim=-1))


@pytest.mark.parametrize("length", [1, L - 1, L, L + 1, 2 * L, 13])
def test_segments_of_length(length: int) -> None:
    tokens = torch.arange(4, 4 + 2 * length).view(2, length)
    tokens[1, length // 2 :] = PAD
    slots = slots_of_length(tokens, PAD, L)
    check_round_trip(tokens, slots)
    assert torch.equal(slots.scatter(tokens, PAD), F.pad(tokens, (0, -length % L), value=PAD))


def test_padding_inside_keeps_its_place_in_slots_of_length() -> None:
    tokens = torch.tensor([[0, 7, PAD, PAD, PAD, 0, 8, 9, PAD, PAD, PAD]])
    slots = slots_of_length(tokens, PAD, L)
    assert segments_of(tokens, slots).tolist() == [[[0, 7, PAD, PAD, PAD], [0, 8, 9, PAD, PAD], [PAD] * 5]]
    check_round_trip(tokens, slots)


@pytest.mark.parametrize("length", [1, 5, 6, 23, 64])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_segments_at_markers(length: int, share: float) -> None:
    generator = torch.Generator().manual_seed(length)
    tokens = torch.arange(4, 4 + 4 * length).view(4, length)
    tokens[torch.rand(4, length, generator=generator) < share] = BOS
    tokens[1, length // 2 :] = PAD  # on the right
    tokens[2, : length // 3] = PAD  # on the left
    tokens[3, torch.rand(length, generator=generator) < 0.3] = PAD  # anywhere, all of it at times
    slots = slots_at_markers(tokens, BOS, PAD, L)
    check_round_trip(tokens, slots)
    for row, ids in zip(tokens.tolist(), segments_of(tokens, slots).tolist(), strict=True):
        expected = [[row[i] for i in segment] for segment in references.segments_at_markers(row, BOS, PAD, L)]
        segments = [[token for token in segment if token != PAD] for segment in ids]
        assert [segment for segment in segments if segment] == expected == segments[: len(expected)]


def test_a_batch_of_nothing_but_padding_has_one_empty_segment() -> None:
    tokens = torch.full((2, 3), PAD)
    check_round_trip(tokens, slots_at_markers(tokens, BOS, PAD, L))
    check_round_trip(tokens, slots_of_length(tokens, PAD, L))


def layer_of(kind: str) -> SegmentLayer:
    torch.manual_seed(0)
    within = SegmentAttention(AttentionSizes(24, 4), segment_length=L) if "S" in kind else None
    layer = SegmentLayer(SIZES, within, FullAttention(AttentionSizes(24, 4)) if "D" in kind else None)
    for name, parameter in layer.named_parameters():
        if "layer_norm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)
    return layer


def run(layer: SegmentLayer, x: Tensor, mask: Tensor, added: Tensor | None = None) -> Tensor:
    positions = None
    """(B, N, L, C) -> (B, N, L, C)."""
    if added is not None:  # row 1 + n of the table is segment n, row 0 a segment of padding
        table = F.pad(added, (0, 0, 1, 0))
        positions = lambda rows: table.gather(1, rows.unsqueeze(-1).expand(-1, -1, table.size(2)))  # noqa: E731
    return layer(x.flatten(1, 2), segment_layout(mask), positions).view_as(x)


DOCUMENTS = [[[1]], [[5, 5], [5, 5]], [[5, 5, 2], [1], [3, 5]]]  # lengths of the segments


@pytest.mark.parametrize("kind", ["S", "D", "SD"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("positions", "documents"),
    [(True, DOCUMENTS[0]), (True, DOCUMENTS[1]), (True, DOCUMENTS[2]), (False, DOCUMENTS[2])],
)
def test_a_layer_is_its_definition(kind: str, dtype: torch.dtype, positions: bool, documents: list[list[int]]) -> None:
    """Batched and padded equals each document alone, segment by segment."""
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_row_of_nothing_but_padding_attends_uniformly(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    layer = EncoderLayer(SIZES, FullAttention(AttentionSizes(24, 4))).to(dtype)
    x, mask = states(2, L, 24, dtype=dtype), padding([3, 0], L)
    out, gradients = outputs_and_gradients(layer, [x], lambda: layer(x, BatchLayout(mask, empty_rows=True)))
    assert out.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients.values())
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


def definition(module: PooledClassificationHead, segments: Tensor) -> Tensor:
    """(N, C) segments of one document -> (C,)."""
    if module.pools_by == "attentive":
        projection, score = module.pooling["projection"], module.pooling["score"]
        scores = torch.stack([torch.tanh(score.weight[0] @ projection(segment)) for segment in segments])
        return (scores.exp() / scores.exp().sum()) @ segments
    choices = {
        "max": segments.max(0).values,
        "min": segments.min(0).values,
        "first": segments[0],
        "last": segments[-1],
        "mean": segments.mean(0),
    }
    return choices[module.pools_by]


@pytest.mark.parametrize("pooling", DOCUMENT_POOLINGS)
def test_pooling_is_its_definition_whatever_stands_in_padding(pooling: str) -> None:
    torch.manual_seed(0)
    module = PooledClassificationHead(pooling, 8, 8, 3)
    counts = [4, 1, 3]
    x, mask = torch.randn(3, 4, 8, requires_grad=True), padding(counts)

    def dense() -> Tensor:
        return torch.stack([definition(module, x[row, :count]) for row, count in enumerate(counts)])

    assert_same_run(module, [x], lambda: module.pool(x, mask), dense)
    other = torch.where(mask.unsqueeze(-1), 1e4, x)
    assert torch.equal(module.pool(other, mask), module.pool(x, mask))
    assert_close(module.pool(x[:, :1], mask[:, :1]), x[:, 0])
