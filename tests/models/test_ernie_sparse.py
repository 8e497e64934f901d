"""ERNIE-Sparse: representative tokens against a literal version."""

from typing import Any

import pytest
import torch
from attention_patterns import attends_to
from building import BOS, PAD, TINY_ENCODER, Vocabulary, build, documents
from helpers import assert_close
from torch import Tensor

from hat_fairseq.modules.batch_layout import BatchLayout

BLOCKS = " --sparse-block 4 --sparse-random 1 --max-positions 140"
LENGTHS = [[1], [8], [9], [12, 8, 3], [53, 44, 9, 36], [99, 64]]


def small(extra: str = "", seed: int = 0, **args: Any) -> Any:
    model = build("ernie_sparse_base", f"{TINY_ENCODER}{BLOCKS}{extra}", Vocabulary(mask=True), seed=seed, **args)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # at 0.02 all patterns would look alike
    return model.eval()


def literal(model: Any, document: Tensor, roll: int = 0) -> tuple[Tensor, Tensor]:
    """Equations 1 to 3 for one document: its (n, C) states and the (m, C) states of its representatives.

    `roll`: SAR's second pass, in which the embeddings of tokens, but not representatives, move by as many places.
    """
    encoder, config = model.encoder.sentence_encoder, model.config
    num_global, block = config.sparse_first * config.sparse_block, config.sparse_block - 1
    embedded, kinds = [], []
    for number, token in enumerate(document.tolist()):
        if number >= num_global and (number - num_global) % block == 0:
            embedded.append((BOS, number))
            kinds.append("representative")
        embedded.append((token, number))
        kinds.append("token")
    assert kinds.count("representative") == -(-max(0, len(document) - num_global) // block)
    if config.representative_positions == "sequence":
        embedded = [(token, place) for place, (token, _) in enumerate(embedded)]
    x = torch.stack([encoder.embed_tokens.weight[t] + encoder.embed_positions.weight[2 + p] for t, p in embedded])
    x = encoder.layernorm_embedding(x)
    where = torch.tensor([kind == "representative" for kind in kinds])
    x = x.masked_scatter(~where[:, None], x[~where].roll(roll, 0))
    for layer in encoder.layers:
        positions = torch.arange(len(x))
        allowed = attends_to(layer.self_attn, positions[:, None], positions[None], BatchLayout())[0]
        x = layer.self_attn_layer_norm(x + softmax_attention(layer.self_attn, x, allowed))
        x = layer.final_layer_norm(x + layer.fc2(torch.nn.functional.gelu(layer.fc1(x))))
        if where.any():
            among = layer.representative_attn or layer.self_attn
            states = softmax_attention(among, x[where], torch.ones(1, 1, 1, dtype=torch.bool))
            if layer.representative_attn_layer_norm is not None:
                states = layer.representative_attn_layer_norm(x[where] + states)
            x = x.masked_scatter(where[:, None], states)
    return x[~where].roll(-roll, 0), x[where]


def softmax_attention(module: Any, x: Tensor, allowed: Tensor) -> Tensor:
    q, k, v = (p(x).unflatten(-1, (module.num_heads, -1)) for p in (module.q_proj, module.k_proj, module.v_proj))
    scores = torch.einsum("qhe,khe->hqk", q, k) * q.size(-1) ** -0.5
    weights = scores.masked_fill(~allowed, float("-inf")).softmax(-1)
    return module.out_proj(torch.einsum("hqk,khe->qhe", weights, v).flatten(1))


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize(
    "flags",
    [
        "",
        " --representative-weights separate --representative-update residual",
        " --representative-positions sequence",
        " --encoder-attention-layers 1",
    ],
)
def test_the_encoder_is_the_papers_definition(flags: str, lengths: list[int]) -> None:
    """Outputs and gradients, padded on either side; alone equals batched follows."""
    model, source = small(flags), documents(lengths)
    encoded = model.encoder(source)
    left = torch.stack([row.roll(int(row.eq(PAD).sum())) for row in source])
    from_left = model.encoder(left).tokens
    expected, actual, states = [], [], []
    for row, length in enumerate(lengths):
        tokens, representatives = literal(model, source[row, :length])
        expected += [tokens, representatives]
        actual += [encoded.tokens[row, :length], encoded.spans[row, : len(representatives)]]
        states.append(representatives)
        assert_close(from_left[row, -length:], tokens)
        if not len(representatives):
            assert_close(encoded.spans[row, 0], tokens[0])
        assert encoded.spans_padding[row].tolist() == [i >= len(representatives) for i in range(encoded.spans.size(1))]
    assert_close(torch.cat(actual), torch.cat(expected))
    parameters = [p for name, p in model.named_parameters() if "lm_head" not in name]
    gradients = [
        torch.autograd.grad(torch.cat(y).pow(3).sum(), parameters, allow_unused=True) for y in (actual, expected)
    ]
    names = [name for name, _ in model.named_parameters() if "lm_head" not in name]
    scale = max(float(x.abs().max()) for x in gradients[1] if x is not None)
    for name, mine, other in zip(names, *gradients, strict=True):
        if other is None:  # no document has a representative
            assert "representative" in name
            assert not mine.any()
        else:
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-5 * scale)


def test_the_second_pass_of_self_attention_regularization() -> None:
    model, lengths = small(), [53, 8, 60]
    source = documents(lengths)
    for roll in (2, 61):
        encoded = model.encoder(source, roll=roll)
        for row, length in enumerate(lengths):
            tokens, representatives = literal(model, source[row, :length], roll)
            assert_close(encoded.tokens[row, :length], tokens)
            assert_close(encoded.spans[row, : len(representatives)], representatives)
    assert not torch.allclose(encoded.tokens[0], model.encoder(source).tokens[0], atol=1e-3)


@pytest.mark.parametrize("roll", [0, 2])
@pytest.mark.parametrize("pooling", ["mean", "max", "min", "first"])
def test_how_a_document_is_read(pooling: str, roll: int) -> None:
    model, lengths = small(f" --document-pooling {pooling}"), [33, 8, 9]
    model.register_classification_head("head", 3)
    head = model.classification_head("head")
    logits = model(documents(lengths), classification_head_name="head", roll=roll)[0]
    for row, length in enumerate(lengths):
        tokens, states = literal(model, documents(lengths)[row, :length], roll)
        reduce = {"mean": lambda x: x.mean(0), "max": lambda x: x.amax(0), "min": lambda x: x.amin(0)}
        state = tokens[0] if pooling == "first" or not len(states) else reduce[pooling](states)
        assert_close(logits[row], head.out_proj(torch.tanh(head.dense(state))))


@pytest.mark.parametrize("flags", ["", " --no-hierarchy", " --no-hierarchy --sparse-first 1 --sparse-last 1"])
def test_only_bigbird_draws_random_blocks_from_the_beginning(flags: str) -> None:
    """The published code draws from the first 7 blocks here, the papers from all."""
    blocks = torch.arange(35)
    attention = small(flags).encoder.sentence_encoder.layers[0].self_attn
    seen = attends_to(attention, 4 * blocks[:, None], 4 * blocks, BatchLayout())[0].any(dim=0)
    random = seen & ((blocks[:, None] - blocks).abs() > 1)
    late = int(random[2:34, 7:34].any(dim=0).sum())
    assert late == 0 if "last" in flags else late > 15


@pytest.mark.parametrize("positions", range(9, 20))
def test_the_longest_document(positions: int) -> None:
    """With positions in the sequence, representatives take some of them; one token more has no position."""
    model = small(f" --representative-positions sequence --max-positions {positions}")
    assert model(documents([model.max_positions()]))[0].isfinite().all()
    with pytest.raises(ValueError, match=f"only {positions} positions"):
        model(documents([model.max_positions() + 1]))


def random_pairs(model: Any) -> list[Tensor]:
    """For each layer, which of 35 blocks attend to which, beyond their neighbours and the ends."""
    blocks, pairs = torch.arange(35), []
    for layer in model.encoder.sentence_encoder.layers:
        seen = attends_to(layer.self_attn, 4 * blocks[:, None], 4 * blocks, BatchLayout())[0]
        pairs.append((seen & ((blocks[:, None] - blocks).abs() > 1))[:, 2:33, 2:33])
    return pairs


@pytest.mark.parametrize("first, last", [(1, 1), (2, 0), (1, 0)])
def test_representatives_come_with_random_blocks_of_the_whole_document(first: int, last: int) -> None:
    """Also with the global blocks of BigBird, whose published code draws from the first 7 blocks here."""
    for pairs in random_pairs(small(f" --sparse-first {first} --sparse-last {last}")):
        assert pairs.any(dim=0).any(dim=0).sum() > 25


@pytest.mark.parametrize("flags", ["", " --no-hierarchy", " --no-hierarchy --sparse-first 1 --sparse-last 1"])
def test_each_layer_draws_its_own_random_blocks(flags: str) -> None:
    one, other = random_pairs(small(flags))
    again = random_pairs(small(flags, seed=1))
    assert one.any()
    assert other.any()
    assert not torch.equal(one, other)
    assert torch.equal(one, again[0])
    assert torch.equal(other, again[1]), "not drawn anew in each model"


@pytest.mark.parametrize("positions", ["block", "sequence"])
def test_representatives_and_a_roll_leave_rotary_positions_in_place(positions: str) -> None:
    """Tokens in other slots than their numbers keep their positions, unless representatives have some of their own."""
    flags = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 0 --max-positions 140 --encoder-family plain:rotary=10000"
    model = build("ernie_sparse_base", f"{flags} --representative-positions {positions}", Vocabulary(mask=True)).eval()
    source, seen = documents([53, 18]), []
    attention = model.core.layers[0].self_attn
    attention.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1].positions))
    for roll in (0, 5):
        model(source, roll=roll)
    batch = model.core.arrange(source)
    slots = batch.layout.slots_of(source)[0]
    counted = seen[0][0, slots] - model.core.pad - 1
    expected = torch.arange(53) if positions == "block" else slots
    assert torch.equal(counted, expected)
    assert torch.equal(seen[1][0, slots], seen[0][0, slots].roll(5))


def test_rotary_positions_do_not_turn_representatives() -> None:
    """With the projections of the sparse attention, which turn queries and keys of tokens."""
    flags = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 0 --max-positions 140 --encoder-family plain:rotary=10000"
    model = build("ernie_sparse_base", flags, Vocabulary(mask=True)).eval()
    layer, layout = model.core.layers[0], model.core.arrange(documents([53, 18])).layout
    x = torch.randn(2, layout.slots.size, 24)
    states = layout.representatives.gather(x)
    mask = layout.among_representatives.key_mask(states)
    expected = layer._attend(states, layout.among_representatives)
    weights = layer.full_attention.row_weights(states, mask, torch.zeros(states.shape[:2]))
    layer.self_attn.rotary = None
    assert_close(layer._attend(states, layout.among_representatives), expected)
    assert_close(layer.full_attention.row_weights(states, mask), weights)
