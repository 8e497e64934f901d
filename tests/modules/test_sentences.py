"""Layouts of documents: sentences, padding on either side, states read and written at sentences; and rolling."""

from typing import Any

import helpers
import pytest
import references
import torch
from building import BOS, PAD, TINY_ENCODER, Vocabulary, build, documents
from helpers import assert_close, assert_same_run
from torch import Tensor, nn

from hat_fairseq.modules.batch_layout import (
    Arranged,
    BatchLayout,
    Representatives,
    Slots,
    arrange_documents,
    on_representatives,
    rolled,
)

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
    assert batch.tokens.tolist() == moved
    assert (layout.slots is None) == (moved == rows)
    states = layout.gather(torch.stack([batch.tokens, batch.rows], dim=2))
    assert torch.equal(states[..., 0][real], tokens[real])
    assert torch.equal(states[..., 1][real], (real.cumsum(dim=1) + PAD)[real])
    padding = torch.tensor(moved).eq(PAD)
    assert layout.padding is None if not padding.any() else torch.equal(layout.padding, padding)
    assert layout.empty_rows == any(set(row) == {PAD} for row in rows)
    expected = [references.sentence_starts(row, BOS, PAD) for row in moved]
    assert [p[~m].tolist() for p, m in zip(sentences.positions, mask, strict=True)] == expected
    assert sentences.positions.size(1) == max(map(len, expected))
    assert not mask.all(dim=1).any()
    assert (sentences.padding is None) == (not mask.any())


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


PLAIN = f"{TINY_ENCODER} --no-hierarchy"
WINDOW = f"{PLAIN} --encoder-attention window --attention-window 5"
GLOBAL = f"{WINDOW} --global-tokens first"
LENGTHS = [23, 17, 7, 1]


def model_of(flags: str) -> Any:
    return build("hat_roberta_base", flags, Vocabulary(mask=True), max_positions=64).eval()


def states(model: Any, tokens: Tensor, roll: int = 0) -> Tensor:
    return model(tokens, features_only=True, roll=roll)[0]


def by_hand(row: list[Any], places: list[int], shift: int) -> list[Any]:
    """Token i stands where token (i + shift) mod n stood."""
    result = list(row)
    for i, place in enumerate(places):
        result[places[(i + shift) % len(places)]] = row[place]
    return result


@pytest.mark.parametrize("shift", [0, 3, 40, -2])
@pytest.mark.parametrize("lengths", [[12, 4, 0], [12, 12, 12], None])
def test_states_move_within_their_document(lengths: list[int] | None, shift: int) -> None:
    """What is inserted between blocks of four slots stays in place; padding of the input is on either side."""
    ids = torch.arange(36).view(3, 12)
    between = torch.tensor([[1, 2, 3, 5, 6, 7, 9], [12, 12, 1, 2, 3, 5, 6], [1, 12, 12, 12, 12, 12, 12]])
    padding = torch.zeros_like(ids).bool() if lengths is None else helpers.padding(lengths, 12)
    layout = BatchLayout(padding if padding.any() else None, slots=None if lengths else Slots(between, 12))
    moved = rolled(Arranged(ids, ids + 100, layout), shift)
    for row in range(3):
        places = list(range(lengths[row])) if lengths else [p for p in between[row].tolist() if p < 12]
        assert moved.tokens[row].tolist() == by_hand(ids[row].tolist(), places, shift)
    assert torch.equal(moved.rows, moved.tokens + 100)
    back = moved.layout.gather(moved.tokens.unsqueeze(-1)).squeeze(-1)
    assert torch.equal(back, layout.gather(ids.masked_fill(padding, 0).unsqueeze(-1)).squeeze(-1))


@pytest.mark.parametrize("positions", ["", " --encoder-family plain:rotary=10000"])
def test_full_attention_gives_the_same_states(positions: str) -> None:
    """Positions move with their tokens, also where they turn queries and keys."""
    model, tokens = model_of(PLAIN + positions), documents(LENGTHS)
    real = tokens.ne(PAD)
    assert_close(states(model, tokens, 8)[real], states(model, tokens)[real])


def test_sparse_attention_gives_other_states() -> None:
    model, tokens = model_of(GLOBAL), documents([23])
    plain = states(model, tokens)
    assert (states(model, tokens, 2) - plain).abs().max() > 1e-3
    assert torch.equal(states(model, tokens, 0), plain)
    assert torch.equal(states(model, tokens, 23), plain)


@pytest.mark.parametrize("flags", [WINDOW, GLOBAL])
def test_a_document_alone_is_the_same_as_in_a_batch(flags: str) -> None:
    model, tokens = model_of(flags), documents(LENGTHS)
    left = torch.stack([row.roll(int(row.eq(PAD).sum())) for row in tokens])
    for row, length in enumerate(LENGTHS):
        alone = states(model, tokens[row : row + 1, :length], 3)[0]
        for batch in (tokens, left):
            assert_close(states(model, batch, 3)[row, batch[row].ne(PAD)], alone)


def test_tokens_that_represent_spans_cannot_be_rolled() -> None:
    for model in (model_of(TINY_ENCODER), build("hierarchical_transformer_tiny", "", Vocabulary(mask=True))):
        with pytest.raises(ValueError, match="roll 2: .* represented by tokens of the document.*--no-hierarchy"):
            model(documents(LENGTHS), roll=2)
