"""Gathering sentence states equals a loop over documents, at any padding."""

import pytest
import references
import torch
from helpers import assert_same_run
from torch import Tensor, nn

from hat_fairseq.modules.batch_layout import Representatives, arrange_documents, on_representatives

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


def sentences_of(tokens: Tensor) -> tuple[Representatives, Tensor]:
    """The sentences' positions in the order of the layers, and their padding as a mask."""
    sentences = arrange_documents(tokens, PAD, BOS).layout.representatives
    assert sentences is not None
    mask = torch.zeros_like(sentences.positions, dtype=torch.bool) if sentences.padding is None else sentences.padding
    return sentences, mask


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_positions_equal_a_loop(rows: list[list[int]]) -> None:
    tokens = torch.tensor(rows)
    moved, (sentences, mask) = arrange_documents(tokens, PAD, BOS).tokens, sentences_of(tokens)
    # padding on the left is moved to the right before the layers
    expected = [references.sentence_starts(row, BOS, PAD) for row in moved.tolist()]
    assert [p[~m].tolist() for p, m in zip(sentences.positions, mask, strict=True)] == expected
    assert sentences.positions.size(1) == max(map(len, expected))
    assert not mask.all(dim=1).any() and (sentences.padding is None) == (not mask.any())


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_a_layout_says_what_is_padded_and_moves_padding_to_the_right(rows: list[list[int]]) -> None:
    tokens = torch.tensor(rows)
    batch = arrange_documents(tokens, PAD)
    layout = batch.layout
    moved = [[token for token in row if token != PAD] + [PAD] * row.count(PAD) for row in rows]
    assert batch.tokens.tolist() == moved
    states = layout.gather(torch.stack([batch.tokens, batch.rows], dim=2))
    real = tokens.ne(PAD)
    assert torch.equal(states[..., 0][real], tokens[real])
    assert torch.equal(states[..., 1][real], (real.cumsum(dim=1) + PAD)[real])
    assert (layout.slots is None) == (moved == rows)
    expected = torch.tensor(moved).eq(PAD)
    assert layout.padding is None if not expected.any() else torch.equal(layout.padding, expected)
    assert layout.empty_rows == any(set(row) == {PAD} for row in rows)


@pytest.mark.parametrize("batch", [1, 2, 33])
def test_random_documents_gather_and_scatter(batch: int) -> None:
    torch.manual_seed(batch)
    tokens = torch.randint(2, 9, (batch, 53)).masked_fill(torch.rand(batch, 53) < 0.2, BOS)
    lengths = torch.randint(1, 54, (batch,))
    tokens = tokens.masked_fill(torch.arange(53) >= lengths[:, None], PAD)
    sentences, mask = sentences_of(tokens)
    x = torch.randn(batch, 53, 4, requires_grad=True)
    states = sentences.gather(x)
    for row in range(batch):
        starts = references.sentence_starts(tokens[row].tolist(), BOS, PAD)
        assert torch.equal(states[row, : len(starts)], x[row, starts])
    assert torch.equal(sentences.scatter(x, states), x)

    new = torch.randn_like(states).requires_grad_()

    def loop() -> torch.Tensor:
        out = x.clone()
        for row in range(batch):
            for slot, start in enumerate(references.sentence_starts(tokens[row].tolist(), BOS, PAD)):
                out[row, start] = new[row, slot]
        return out

    assert_same_run(nn.Identity(), [x, new], lambda: on_representatives(x, sentences, lambda _: new), loop)


def test_many_sentences_in_one_long_document() -> None:
    tokens = torch.full((1, 50_000), 7)
    tokens[0, ::100] = BOS
    sentences, mask = sentences_of(tokens)
    assert torch.equal(sentences.positions[0], torch.arange(0, 50_000, 100)) and not mask.any()
