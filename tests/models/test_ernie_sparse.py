"""ERNIE-Sparse: representative tokens against a literal version, sizes, the start from RoBERTa."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import BOS, PAD, TINY_ENCODER, Vocabulary, build, documents
from golden import check_losses
from helpers import assert_close, is_new_part
from torch import Tensor

from hat_fairseq.models.architectures import LRA
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.representative_tokens import RepresentativeSlots

BLOCKS = " --sparse-block 4 --sparse-random 1 --max-positions 140"
LENGTHS = [[1], [7], [8], [9], [10], [12, 8, 3], [53, 44, 9, 36], [99, 64]]


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
        allowed = layer.self_attn.allowed(positions[:, None], positions[None], BatchLayout())[0]
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
            assert "representative" in name and not mine.any()
        else:
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-5 * scale)


@pytest.mark.parametrize("roll", [2, 8, 61])
def test_the_second_pass_of_self_attention_regularization(roll: int) -> None:
    model, lengths = small(), [53, 8, 60]
    source = documents(lengths)
    encoded = model.encoder(source, roll=roll)
    for row, length in enumerate(lengths):
        tokens, representatives = literal(model, source[row, :length], roll)
        assert_close(encoded.tokens[row, :length], tokens)
        assert_close(encoded.spans[row, : len(representatives)], representatives)
    assert not torch.allclose(encoded.tokens[0], model.encoder(source).tokens[0], atol=1e-3)


@pytest.mark.parametrize("roll", [0, 3])
@pytest.mark.parametrize("weights", [torch.float32, torch.bfloat16])
def test_bf16(weights: torch.dtype, roll: int) -> None:
    """Under autocast and with weights in bf16: outputs, and the direction of the gradients."""
    model, source = small(), documents([53, 8, 140])
    runs = []
    for dtype in (torch.float32, weights):
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(runs) and weights == torch.float32):
            out = model.to(dtype)(source, features_only=True, roll=roll)[0][source != PAD].float()
        parameters = [p for name, p in model.named_parameters() if "lm_head" not in name]
        runs.append((out, [g.float().flatten() for g in torch.autograd.grad(out.square().sum(), parameters)]))
    (exact, expected), (out, gradients) = runs
    assert_close(out, exact, torch.bfloat16)
    large = 1e-3 * max(g.norm() for g in expected)  # the gradient of a bias of keys is 0
    for mine, other in zip(gradients, expected, strict=True):
        assert other.norm() < large or torch.cosine_similarity(mine, other, dim=0) > 0.98


@pytest.mark.parametrize("pooling", ["mean", "max", "min", "first"])
def test_how_a_document_is_read(pooling: str) -> None:
    model, lengths = small(f" --document-pooling {pooling}"), [33, 8, 9]
    model.register_classification_head("head", 3)
    head = model.classification_head("head")
    logits = model(documents(lengths), classification_head_name="head")[0]
    for row, length in enumerate(lengths):
        tokens, states = literal(model, documents(lengths)[row, :length])
        reduce = {"mean": lambda x: x.mean(0), "max": lambda x: x.amax(0), "min": lambda x: x.amin(0)}
        state = tokens[0] if pooling == "first" or not len(states) else reduce[pooling](states)
        assert_close(logits[row], head.out_proj(torch.tanh(head.dense(state))))


def test_slots() -> None:
    slots = RepresentativeSlots(num_global=2, block=3)
    device = torch.device("cpu")
    for length, line in ((1, "0"), (2, "01"), (3, "01r2"), (5, "01r234"), (6, "01r234r5"), (8, "01r234r567")):
        assert slots.count(length) == line.count("r") == -(-max(0, length - 2) // 3)
        assert slots.tokens(length, device).tolist() == [i for i, kind in enumerate(line) if kind != "r"]
        assert slots.representatives(length, device).tolist() == [i for i, kind in enumerate(line) if kind == "r"]


def test_the_start_from_roberta() -> None:
    """Nothing is new but the representatives' own parts; documents without representatives give the same output."""
    plain = build(
        "hat_roberta_base", f"{TINY_ENCODER} --no-hierarchy --max-positions 50", Vocabulary(mask=True), seed=7
    )
    state = {name: tensor for name, tensor in plain.eval().state_dict().items() if not name.endswith("_fingerprint")}
    for flags, new_per_layer in (
        ("", 0),
        (" --representative-weights separate", 8),
        (" --representative-update residual", 2),
    ):
        model = small(flags, seed=1)
        names = set(model.state_dict())
        model.load_state_dict(dict(state))
        assert {name for name in names if is_new_part(name, model)} == names - {*state} - {
            "encoder.dictionary_fingerprint"
        }
        assert len([name for name in names if is_new_part(name, model)]) == 2 * new_per_layer
        source = documents([8, 5])
        assert_close(model(source)[0][source != PAD], plain(source)[0][source != PAD])


def count(arch: str, **args: Any) -> int:
    with torch.device("meta"):
        model = build(arch, flags="", task=Vocabulary(50265), **args)
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameter_counts() -> None:
    plain = count("hat_roberta_base", no_hierarchy=True, max_positions=4096)
    assert count("ernie_sparse_base") == plain == 127_449_177
    own = 12 * 4 * (768 * 768 + 768)
    assert count("ernie_sparse_base", representative_weights="separate") == plain + own


def test_attention_is_as_printed() -> None:
    """Table 9: global, neighbouring and random tokens, pooling and the sharing of weights."""
    with torch.device("meta"):
        config = build("ernie_sparse_base", flags="").config
    pattern = config.attention().pattern
    numbers = pattern.first + pattern.last, pattern.window, pattern.random
    assert [pattern.block * number for number in numbers] == [128, 192, 192]
    assert (config.document_pooling, config.representative_weights, config.activation_fn) == ("mean", "shared", "gelu")


@pytest.mark.parametrize("representatives", ["", " --no-hierarchy"])
@pytest.mark.parametrize("ends", ["", " --sparse-first 1 --sparse-last 1"])
def test_only_bigbird_draws_random_blocks_from_the_beginning(ends: str, representatives: str) -> None:
    """The published code draws from the first 7 blocks here, the papers from all."""
    attention = small(f"{ends}{representatives}").encoder.sentence_encoder.layers[0].self_attn
    blocks = torch.arange(35)
    seen = attention.allowed(4 * blocks[:, None], 4 * blocks, BatchLayout())[0].any(dim=0)
    random = seen & ((blocks[:, None] - blocks).abs() > 1)
    late = int(random[2:34, 7:34].any(dim=0).sum())
    assert late == 0 if ends and representatives else late > 15


@pytest.mark.parametrize("task", LRA)
def test_long_range_arena_sizes(task: str) -> None:
    """The three models of a task differ in the attention alone, and the representatives' projections."""
    with torch.device("meta"):
        models = {kind: build(f"{kind}_lra_{task}", "") for kind in ("transformer", "bigbird", "ernie_sparse")}
    sizes = {kind: sum(p.numel() for p in model.parameters()) for kind, model in models.items()}
    config = models["transformer"].config
    width, ffn, inner = config.encoder_embed_dim, config.encoder_ffn_embed_dim, config.encoder_qkv_dim
    inner = inner or width
    attention = 4 * width * inner + 3 * inner + width
    layer = attention + 2 * width * ffn + ffn + width + 4 * width
    head = 60 + width * width + width + 2 * width  # of the masked LM
    positions = (config.max_positions + 2) * width if config.encoder_learned_pos else 0
    expected = 60 * width + positions + config.encoder_layers * layer + 2 * width + head
    assert sizes["transformer"] == sizes["bigbird"] == expected
    assert sizes["ernie_sparse"] == expected + config.encoder_layers * attention


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (" --encoder-attention full", "representative tokens need --encoder-attention block-sparse"),
        (" --global-tokens first", "--global-tokens has no effect with --encoder-attention block-sparse"),
        (" --sparse-block 1", "--sparse-block 1 has room for a representative only"),
        (" --sparse-window 2", "--sparse-window 2: it must be odd"),
        (" --no-hierarchy --encoder-attention full", "--sparse-block has no effect with --encoder-attention full"),
        (" --encoder-qkv-dim 25", "inner_dim .25. must be a multiple of num_heads"),
        (" --sparse-first 35", "--sparse-first 35 blocks of 4 tokens leave none of --max-positions 140 for rep"),
        (" --sparse-block 70", "--sparse-first 2 blocks of 70 tokens leave none of --max-positions 140 for rep"),
        (" --sparse-random 36", "--sparse-random 36: --max-positions 140 is only 35 blocks of 4 tokens"),
        (" --sparse-window 37 --no-hierarchy", "--sparse-window 37: --max-positions 140 is only 35 blocks of 4"),
        (" --no-hierarchy --document-pooling max", "--document-pooling max has no effect with --no-hierarchy"),
        (" --no-hierarchy --representative-update residual", "--representative-update residual has no effect with"),
        (" --encoder-layers 0", "--encoder-layers 0: it must be at least 1"),
        (" --encoder-embed-dim 0", "--encoder-embed-dim 0: it must be at least 1"),
        (" --attention-dropout nan", "--attention-dropout nan: it must be from 0 to 1"),
        (" --pooler-dropout 1.5", "--pooler-dropout 1.5: it must be from 0 to 1"),
    ],
)
def test_wrong_flags_are_refused(flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(flags)
    with pytest.raises(ValueError, match="a row of 141 tokens, but only 140 positions: raise --max-positions"):
        small()(documents([141]))


def test_the_longest_document() -> None:
    """With positions in the sequence, representatives take some of them; one token more has no position."""
    for positions in range(9, 30):
        model = small(f" --representative-positions sequence --max-positions {positions}")
        assert model(documents([model.max_positions()]))[0].isfinite().all()
        with pytest.raises(ValueError, match=f"only {positions} positions"):
            model(documents([model.max_positions() + 1]))


def test_golden_losses() -> None:
    source = documents([53, 18])
    for name, extra in (("ernie_sparse", ""), ("bigbird", " --no-hierarchy --sparse-first 1 --sparse-last 1")):
        model = build("ernie_sparse_base", f"{TINY_ENCODER}{BLOCKS}{extra}", Vocabulary(mask=True))
        check_losses(
            name,
            model.train(),
            lambda m=model: torch.nn.functional.cross_entropy(m(source)[0][:, :-1].transpose(1, 2), source[:, 1:]),
        )
