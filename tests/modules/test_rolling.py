"""Rolling: where states stand, literally; and what it does to encoders, alone and in batches."""

from __future__ import annotations

from typing import Any

import helpers
import pytest
import torch
from building import PAD, TINY_ENCODER, Vocabulary, build, documents
from helpers import assert_close
from torch import Tensor

from hat_fairseq.modules.batch_layout import Arranged, BatchLayout, Slots
from hat_fairseq.networks.encoder import rolled

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
def test_states_move_within_their_document(shift: int) -> None:
    """What is inserted between blocks of four slots stays in place; padding of the input is on either side."""
    ids = torch.arange(36).view(3, 12)
    between = torch.tensor([[1, 2, 3, 5, 6, 7, 9], [12, 12, 1, 2, 3, 5, 6], [1, 12, 12, 12, 12, 12, 12]])
    for lengths in ([12, 4, 0], [12, 12, 12], None):
        padding = torch.zeros_like(ids).bool() if lengths is None else helpers.padding(lengths, 12)
        layout = BatchLayout(padding if padding.any() else None, slots=None if lengths else Slots(between, 12))
        moved = rolled(Arranged(ids, ids + 100, layout), shift)
        for row in range(3):
            places = list(range(lengths[row])) if lengths else [p for p in between[row].tolist() if p < 12]
            assert moved.tokens[row].tolist() == by_hand(ids[row].tolist(), places, shift)
        assert torch.equal(moved.rows, moved.tokens + 100)
        back = moved.layout.gather(moved.tokens.unsqueeze(-1)).squeeze(-1)
        assert torch.equal(back, layout.gather(ids.masked_fill(padding, 0).unsqueeze(-1)).squeeze(-1))


def test_full_attention_gives_the_same_states_and_sparse_attention_others() -> None:
    model, tokens = model_of(PLAIN), documents(LENGTHS)
    real = tokens.ne(PAD)
    assert_close(states(model, tokens, 8)[real], states(model, tokens)[real])
    model, tokens = model_of(GLOBAL), documents([23])
    plain = states(model, tokens)
    assert (states(model, tokens, 2) - plain).abs().max() > 1e-3
    assert torch.equal(states(model, tokens, 0), plain) and torch.equal(states(model, tokens, 23), plain)


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
