"""The layout of documents: sentences, padding on either side, and states that are read and written at sentences."""

import pytest
import references
import torch
from helpers import assert_same_run
from torch import Tensor, nn

from hat_fairseq.modules.batch_layout import BatchLayout, Representatives, arrange_documents, on_representatives

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
def test_a_layout_says_where_sentences_start_and_moves_padding_to_the_right(rows: list[list[int]]) -> None:
    tokens = torch.tensor(rows)
    batch, (sentences, mask) = arrange_documents(tokens, PAD, BOS), sentences_of(tokens)
    layout, real = batch.layout, tokens.ne(PAD)
    moved = [[token for token in row if token != PAD] + [PAD] * row.count(PAD) for row in rows]
    assert batch.tokens.tolist() == moved and (layout.slots is None) == (moved == rows)
    states = layout.gather(torch.stack([batch.tokens, batch.rows], dim=2))
    assert torch.equal(states[..., 0][real], tokens[real])
    assert torch.equal(states[..., 1][real], (real.cumsum(dim=1) + PAD)[real])
    padding = torch.tensor(moved).eq(PAD)
    assert layout.padding is None if not padding.any() else torch.equal(layout.padding, padding)
    assert layout.empty_rows == any(set(row) == {PAD} for row in rows)
    expected = [references.sentence_starts(row, BOS, PAD) for row in moved]
    assert [p[~m].tolist() for p, m in zip(sentences.positions, mask, strict=True)] == expected
    assert sentences.positions.size(1) == max(map(len, expected))
    assert not mask.all(dim=1).any() and (sentences.padding is None) == (not mask.any())


def test_random_documents_gather_and_scatter() -> None:
    torch.manual_seed(0)
    tokens = torch.randint(2, 9, (9, 53)).masked_fill(torch.rand(9, 53) < 0.2, BOS)
    tokens = tokens.masked_fill(torch.arange(53) >= torch.randint(1, 54, (9, 1)), PAD)
    sentences, _ = sentences_of(tokens)
    starts = [references.sentence_starts(row, BOS, PAD) for row in tokens.tolist()]
    x = torch.randn(9, 53, 4, requires_grad=True)
    states = sentences.gather(x)
    assert all(torch.equal(states[row, : len(where)], x[row, where]) for row, where in enumerate(starts))
    assert torch.equal(sentences.scatter(x, states), x)
    new = torch.randn_like(states).requires_grad_()

    def loop() -> Tensor:
        out = x.clone()
        for row, where in enumerate(starts):
            out[row, where] = new[row, : len(where)]
        return out

    assert_same_run(
        nn.Identity(),
        [x, new],
        lambda: on_representatives(x, BatchLayout(representatives=sentences), lambda _: new),
        loop,
    )
