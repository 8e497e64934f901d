"""Rolling: where states stand, literally; and what it does to encoders, alone and in batches."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.parametrize("shift", [0, 1, 3, 7, 40, -2])
def test_states_move_within_their_document(shift: int) -> None:
    ids = torch.arange(21).view(3, 7)
    for lengths in ([7, 4, 0], [7, 7, 7]):
        padding = torch.arange(7) >= torch.tensor(lengths)[:, None]
        batch = Arranged(ids, ids + 100, BatchLayout(padding if padding.any() else None))
        moved = rolled(batch, shift)
        for row, length in enumerate(lengths):
            assert moved.tokens[row].tolist() == by_hand(ids[row].tolist(), list(range(length)), shift)
        assert torch.equal(moved.rows, moved.tokens + 100)
        back = moved.layout.gather(moved.tokens.unsqueeze(-1)).squeeze(-1)
        assert torch.equal(back, ids.masked_fill(padding, 0))


@pytest.mark.parametrize("shift", [1, 3, 8])
def test_what_is_inserted_between_blocks_stays_in_place(shift: int) -> None:
    """Blocks of four slots, the first of which no token has; padding of the input on either side."""
    slots = torch.tensor([[1, 2, 3, 5, 6, 7, 9], [12, 12, 1, 2, 3, 5, 6], [1, 12, 12, 12, 12, 12, 12]])
    ids, layout = torch.arange(36).view(3, 12), BatchLayout(slots=Slots(slots, 12))
    moved = rolled(Arranged(ids, ids, layout), shift)
    for row, places in enumerate(slots.tolist()):
        assert moved.tokens[row].tolist() == by_hand(ids[row].tolist(), [p for p in places if p < 12], shift)
    back = [each.slots.gather(x.unsqueeze(-1)) for each, x in ((layout, ids), (moved.layout, moved.tokens))]
    assert torch.equal(*back)


@pytest.mark.parametrize("roll", [1, 2, 8, 100])
def test_full_attention_gives_the_same_states(roll: int) -> None:
    model, tokens = model_of(PLAIN), documents(LENGTHS)
    real = tokens.ne(PAD)
    assert_close(states(model, tokens, roll)[real], states(model, tokens)[real])


@pytest.mark.parametrize("flags", [WINDOW, GLOBAL])
def test_sparse_attention_gives_others_and_a_whole_turn_none(flags: str) -> None:
    model, tokens = model_of(flags), documents([23])
    plain = states(model, tokens)
    assert (states(model, tokens, 2) - plain).abs().max() > 1e-3
    assert torch.equal(states(model, tokens, 0), plain) and torch.equal(states(model, tokens, 23), plain)


@pytest.mark.parametrize("flags", [WINDOW, GLOBAL])
@pytest.mark.parametrize("left", [False, True])
def test_a_document_alone_is_the_same_as_in_a_batch(flags: str, left: bool) -> None:
    model, tokens = model_of(flags), documents(LENGTHS)
    for row, length in enumerate(LENGTHS):
        alone = states(model, tokens[row : row + 1, :length], 3)[0]
        batch = torch.stack([r.roll(int(r.eq(PAD).sum())) for r in tokens]) if left else tokens
        assert_close(states(model, batch, 3)[row, batch[row].ne(PAD)], alone)


def test_a_rolled_encoder_reads_the_rolled_embedding() -> None:
    """Literally: embed, index, run the layers, index back."""
    model, tokens = model_of(WINDOW), documents([19, 11])
    encoder = model.encoder.sentence_encoder
    for row, length in enumerate([19, 11]):
        batch = encoder.arrange(tokens[row : row + 1, :length])
        x, layout = encoder.embed(batch.tokens, batch.rows), BatchLayout()
        moved = torch.tensor(by_hand(list(range(length)), list(range(length)), 3))
        x = x[:, moved]
        for layer in encoder.layers:
            x = layer(x, layout)
        assert_close(states(model, tokens, 3)[row, :length], x[0, moved.argsort()])


def test_every_parameter_gets_a_gradient() -> None:
    model, tokens = model_of(WINDOW), documents(LENGTHS)
    model(tokens, roll=2)[0][tokens.ne(PAD)].logsumexp(-1).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize(
    ("arch", "flags"), [("hat_roberta_base", TINY_ENCODER), ("hierarchical_transformer_tiny", "--dropout 0")]
)
def test_tokens_that_represent_spans_cannot_be_rolled(arch: str, flags: str) -> None:
    model = build(arch, flags, Vocabulary(mask=True), max_positions=64)
    with pytest.raises(ValueError, match="roll 2: .* represented by tokens of the document.*--no-hierarchy"):
        model(documents(LENGTHS), roll=2)
