"""Tokens to a grid of segments and back: against loops, at awkward lengths, without losing a token."""

from __future__ import annotations

import pytest
import references
import torch
from building import BOS, PAD
from torch import Tensor

from hat_fairseq.modules.segments import SegmentGrid, segments_at_markers, segments_of_length

L = 5


def check_round_trip(tokens: Tensor, grid: SegmentGrid) -> None:
    ids = grid.scatter(tokens, PAD)
    assert ids.shape == (len(tokens), grid.num_segments, L)
    assert int(ids.ne(PAD).sum()) == int(tokens.ne(PAD).sum())
    assert grid.has_padding == bool(ids.eq(PAD).any()) and grid.has_empty == bool(ids.eq(PAD).all(dim=2).any())
    x = torch.stack([ids, ids * 10], dim=-1)
    back = grid.gather(x.flatten(1, 2))
    expected = torch.where(tokens == PAD, 0, tokens)
    assert torch.equal(back, torch.stack([expected, expected * 10], dim=-1))


@pytest.mark.parametrize("length", [1, L - 1, L, L + 1, 2 * L, 13, 17])
def test_segments_of_length(length: int) -> None:
    tokens = torch.arange(4, 4 + 2 * length).view(2, length)
    tokens[1, length // 2 :] = PAD
    grid = segments_of_length(tokens, PAD, L)
    assert grid.num_segments == -(-length // L)
    check_round_trip(tokens, grid)
    flat = grid.scatter(tokens, PAD).flatten(1)
    assert torch.equal(flat[:, :length], tokens) and bool(flat[:, length:].eq(PAD).all())


def test_padding_inside_keeps_its_place_in_segments_of_length() -> None:
    tokens = torch.tensor([[0, 7, PAD, PAD, PAD, 0, 8, 9, PAD, PAD, PAD]])
    grid = segments_of_length(tokens, PAD, L)
    assert grid.scatter(tokens, PAD).tolist() == [
        [[0, 7, PAD, PAD, PAD], [0, 8, 9, PAD, PAD], [PAD] * 5],
    ]
    check_round_trip(tokens, grid)


@pytest.mark.parametrize("length", [1, 4, 5, 6, 11, 23, 64])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_segments_at_markers(length: int, share: float) -> None:
    generator = torch.Generator().manual_seed(length)
    tokens = torch.arange(4, 4 + 4 * length).view(4, length)
    tokens[torch.rand(4, length, generator=generator) < share] = BOS
    tokens[1, length // 2 :] = PAD  # on the right
    tokens[2, : length // 3] = PAD  # on the left
    tokens[3, torch.rand(length, generator=generator) < 0.3] = PAD  # anywhere, all of it at times
    grid = segments_at_markers(tokens, BOS, PAD, L)
    check_round_trip(tokens, grid)
    for row, ids in zip(tokens.tolist(), grid.scatter(tokens, PAD).tolist(), strict=True):
        expected = [[row[i] for i in segment] for segment in references.segments_at_markers(row, BOS, PAD, L)]
        found = [[token for token in segment if token != PAD] for segment in ids]
        assert [segment for segment in found if segment] == expected == found[: len(expected)]


def test_markers_at_every_segment_give_segments_of_length() -> None:
    tokens = torch.arange(4, 19)[None].clone()
    tokens[:, ::L] = BOS
    at_markers, of_length = segments_at_markers(tokens, BOS, PAD, L), segments_of_length(tokens, PAD, L)
    assert torch.equal(at_markers.slots, of_length.slots) and at_markers.num_segments == of_length.num_segments


def test_a_batch_of_nothing_but_padding_has_one_empty_segment() -> None:
    tokens = torch.full((2, 3), PAD)
    check_round_trip(tokens, segments_at_markers(tokens, BOS, PAD, L))
    check_round_trip(tokens, segments_of_length(tokens, PAD, L))
