"""Gathering sentence states equals a loop over documents, at any padding."""

import pytest
import references
import torch
from helpers import assert_same_run
from torch import nn

from hat_fairseq.modules.sentences import (
    gather_sentences,
    scatter_sentences,
    sentence_of_each_token,
    sentence_positions,
    sentence_starts,
)

BOS, PAD = 0, 1
ROWS = {
    "one token": [[0]],
    "no marker": [[5, 6, 7]],
    "text before the first marker": [[5, 0, 6]],
    "every token a marker": [[0, 0, 0]],
    "right padding": [[0, 5, 6, 0, 7], [0, 5, 1, 1, 1], [9, 1, 1, 1, 1]],
    "left padding": [[1, 1, 0, 5, 0], [0, 5, 6, 7, 0], [1, 1, 1, 1, 9]],
    "nothing but padding": [[0, 5, 0], [1, 1, 1]],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_positions_equal_a_loop(rows: list[list[int]]) -> None:
    starts = sentence_starts(torch.tensor(rows), BOS, PAD)
    positions, mask = sentence_positions(starts)
    known = sentence_positions(starts, positions.size(1))
    assert torch.equal(known[0], positions) and torch.equal(known[1], mask)
    expected = [references.sentence_starts(row, BOS, PAD) for row in rows]
    assert [p[~m].tolist() for p, m in zip(positions, mask, strict=True)] == expected
    assert positions.size(1) == max(map(len, expected))
    assert not mask.all(dim=1).any()


@pytest.mark.parametrize("batch", [1, 2, 33])
def test_random_documents_gather_and_scatter(batch: int) -> None:
    torch.manual_seed(batch)
    tokens = torch.randint(2, 9, (batch, 53)).masked_fill(torch.rand(batch, 53) < 0.2, BOS)
    lengths = torch.randint(1, 54, (batch,))
    tokens = tokens.masked_fill(torch.arange(53) >= lengths[:, None], PAD)
    positions, mask = sentence_positions(sentence_starts(tokens, BOS, PAD))
    x = torch.randn(batch, 53, 4, requires_grad=True)
    states = gather_sentences(x, positions)
    for row in range(batch):
        starts = references.sentence_starts(tokens[row].tolist(), BOS, PAD)
        assert torch.equal(states[row, : len(starts)], x[row, starts])
    assert torch.equal(scatter_sentences(x, positions, mask, states), x)

    new = torch.randn_like(states).requires_grad_()

    def loop() -> torch.Tensor:
        out = x.clone()
        for row in range(batch):
            for slot, start in enumerate(references.sentence_starts(tokens[row].tolist(), BOS, PAD)):
                out[row, start] = new[row, slot]
        return out

    assert_same_run(nn.Identity(), [x, new], lambda: scatter_sentences(x, positions, mask, new), loop)


def test_many_sentences_in_one_long_document() -> None:
    tokens = torch.full((1, 50_000), 7)
    tokens[0, ::100] = BOS
    positions, mask = sentence_positions(sentence_starts(tokens, BOS, PAD))
    assert torch.equal(positions[0], torch.arange(0, 50_000, 100)) and not mask.any()


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_the_sentence_of_each_token_is_the_last_that_started(rows: list[list[int]]) -> None:
    found = sentence_of_each_token(sentence_starts(torch.tensor(rows), BOS, PAD)).tolist()
    for row, of_row in zip(rows, found, strict=True):
        starts = references.sentence_starts(row, BOS, PAD)
        assert of_row == [max([start for start in starts if start <= i], default=0) for i in range(len(row))]
