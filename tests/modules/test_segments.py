"""Tokens to a slots of segments and back: against loops, at awkward lengths, without losing a token."""

from __future__ import annotations

import pytest
import references
import torch
from building import BOS, PAD
from torch import Tensor

from hat_fairseq.modules.batch_layout import Slots
from hat_fairseq.modules.segments import arrange_segments, slots_at_markers, slots_of_length

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


@pytest.mark.parametrize("length", [1, L - 1, L, L + 1, 2 * L, 13, 17])
def test_segments_of_length(length: int) -> None:
    tokens = torch.arange(4, 4 + 2 * length).view(2, length)
    tokens[1, length // 2 :] = PAD
    slots = slots_of_length(tokens, PAD, L)
    assert slots.size == -(-length // L) * L
    check_round_trip(tokens, slots)
    flat = slots.scatter(tokens, PAD)
    assert torch.equal(flat[:, :length], tokens) and bool(flat[:, length:].eq(PAD).all())


def test_padding_inside_keeps_its_place_in_slots_of_length() -> None:
    tokens = torch.tensor([[0, 7, PAD, PAD, PAD, 0, 8, 9, PAD, PAD, PAD]])
    slots = slots_of_length(tokens, PAD, L)
    assert segments_of(tokens, slots).tolist() == [
        [[0, 7, PAD, PAD, PAD], [0, 8, 9, PAD, PAD], [PAD] * 5],
    ]
    check_round_trip(tokens, slots)


@pytest.mark.parametrize("length", [1, 4, 5, 6, 11, 23, 64])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
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


def test_markers_at_every_segment_give_slots_of_length() -> None:
    tokens = torch.arange(4, 19)[None].clone()
    tokens[:, ::L] = BOS
    at_markers, of_length = slots_at_markers(tokens, BOS, PAD, L), slots_of_length(tokens, PAD, L)
    assert torch.equal(at_markers.numbers, of_length.numbers) and at_markers.size == of_length.size


def test_a_batch_of_nothing_but_padding_has_one_empty_segment() -> None:
    tokens = torch.full((2, 3), PAD)
    check_round_trip(tokens, slots_at_markers(tokens, BOS, PAD, L))
    check_round_trip(tokens, slots_of_length(tokens, PAD, L))
