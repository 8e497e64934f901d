"""Recorded attention is the module's own, in every system that has some to show."""

from typing import Any

import pytest
import torch
from building import BOS, TINY, TINY_ENCODER, build, documents
from torch import Tensor

from hat_fairseq.analysis.look import AttentionMap
from hat_fairseq.analysis.recording import Recorder, averaged, segment_weights, summed, units
from hat_fairseq.modules.pooling_attention import PoolingAttention

SEGMENTS = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --segment-length 6 --max-segments 9 "
    "--layout S|SD|D|SD"
)
POOLING = f"{TINY_ENCODER} --encoder-attention-layers 0-1 --attention-window 4 --pooling-window 10 --max-positions 80"
SPARSE = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 0 --max-positions 80"
SEPARATE = f"{SPARSE} --representative-weights separate --representative-update residual"
# Name -> architecture, flags, what it shows, a unit
MODELS = {
    "tokens ask": ("hat_roberta_base", TINY_ENCODER, "attention to sentences", "sentence"),
    "bos asks": ("hat_roberta_base", f"{TINY_ENCODER} --sentence-queries bos", "attention to sentences", "sentence"),
    "by length": ("hierarchical_transformer", SEGMENTS, "attention among segments", "segment"),
    "by marker": ("hierarchical_transformer", f"{SEGMENTS} --segment-by marker", "attention among segments", "segment"),
    "padding attended": (
        "hierarchical_transformer",
        f"{SEGMENTS} --attend-segment-padding",
        "attention among segments",
        "segment",
    ),
    "pooling": ("poolingformer_base", POOLING, "attention to pooled tokens", "sentence"),
    "ernie_sparse": ("ernie_sparse_base", SPARSE, "attention among representatives", "block"),
    "own weights": ("ernie_sparse_base", SEPARATE, "attention among representatives", "block"),
    "hat_bart": ("hat_bart_base", TINY, "attention among sentences", "sentence"),
}
OF_SEGMENTS = list(MODELS)[:5]  # whose segments or sentences `hat predict --details` weighs


def model_of(name: str, flags: str = "") -> Any:
    model = build(MODELS[name][0], f"{MODELS[name][1]} {flags}")
    if name in OF_SEGMENTS:
        model.register_classification_head("topic", num_classes=3)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)  # at 0.02 all weights would be nearly alike
    return model.eval()


def encoder_of(name: str) -> Any:
    model = model_of(name)
    return model.encoder if hasattr(model, "decoder") else model.core


@pytest.mark.slow
@torch.no_grad()
def test_what_is_recorded() -> None:
    for name, (_, _, title, unit) in MODELS.items():
        for length in (37, 3):
            encoder, tokens = encoder_of(name), documents([length])
            plain = encoder(tokens).tokens
            with Recorder(encoder, tokens) as recorder:
                recorded = encoder(tokens).tokens
            assert torch.equal(plain, recorded), name
            assert torch.equal(plain, encoder(tokens).tokens), name
            (one,) = recorder.maps()
            no_markers = name == "pooling" and length == 3
            assert (one.name, recorder.unit) == (title, "block" if no_markers else unit)
            assert one.to_tokens == (name == "pooling")
            units = recorder.num_units
            assert one.weights.shape[2:] == (units, units)
            assert one.queries == "source"
            assert recorder.unit_of_token.shape == (length,)
            assert recorder.unit_of_token.max() == units - 1
            assert recorder.lengths == tuple(int((recorder.unit_of_token == unit).sum()) for unit in range(units))
            torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:3]))
            assert length == 3 or (units > 4 and one.weights.std() > 0.02), name


@torch.no_grad()
@pytest.mark.parametrize("name", ["ernie_sparse", "own weights"])
def test_weights_among_representatives_give_the_layers_output(name: str) -> None:
    def check(layer: Any, inputs: tuple[Tensor, Any], output: Tensor) -> None:
        x, layout = inputs
        before = layout.representatives.gather(super(type(layer), layer).forward(x, layout))
        attention, weights = layer.full_attention, layer.weights(x, layout)
        values = attention.v_proj(before).unflatten(-1, (attention.num_heads, -1))
        out = attention.out_proj(torch.einsum("bhij,bjhe->bihe", weights, values).flatten(2))
        if layer.representative_attn_layer_norm is not None:
            out = layer.representative_attn_layer_norm(before + out)
        torch.testing.assert_close(layout.representatives.gather(output), out, atol=1e-5, rtol=1e-5)
        seen.append(layer)

    encoder, seen = encoder_of(name), []
    for layer in encoder.layers:
        layer.register_forward_hook(check)
    encoder(documents([37]))
    assert len(seen) == 2


@torch.no_grad()
@pytest.mark.parametrize("variant", ["", "--pooling-variant mix", "--pooling-variant share-weights"])
def test_weights_on_cells_give_the_second_level(variant: str) -> None:
    torch.manual_seed(0)
    model = build("poolingformer_base", f"{POOLING} {variant}").eval()
    attention = model.core.layers[0].self_attn
    assert isinstance(attention, PoolingAttention)
    x = torch.randn(1, 37, 24) * 3
    layout = model.core.arrange(documents([37])).layout
    weights = attention.weights(x, layout)
    first = super(PoolingAttention, attention).output_of_heads(x, layout)
    y = x if "mix" in variant else first
    projections = attention if "share" in variant else attention.pooled
    cells = attention._cells(x, layout)[0]
    values = attention.pooled.value_pooling(attention.heads(projections.v_proj(y)), cells)
    level = torch.einsum("bhtm,bhme->bthe", weights, values).flatten(2)
    torch.testing.assert_close(first + level, attention.output_of_heads(x, layout), atol=1e-5, rtol=1e-5)
    middle = attention.middle_tokens(weights.size(-1))
    assert middle[:3].tolist() == [2, 3, 4]  # of tokens 0 to 4, 1 to 5, 2 to 6


def test_sums_means_and_maxima() -> None:
    numbers = torch.tensor([0, 0, -1, 1])
    weights = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [1.0, 0, 0, 0], [0, 0, 0, 1.0]]])
    by_key = summed(weights, numbers, 2)
    torch.testing.assert_close(by_key, torch.tensor([[[0.3, 0.4], [0.7, 0.1], [1.0, 0.0], [0.0, 1.0]]]))
    torch.testing.assert_close(averaged(by_key, numbers, 2), torch.tensor([[[0.5, 0.25], [0.0, 1.0]]]))
    one = AttentionMap("x", "source", (1, 3), torch.rand(2, 4, 3, 5))
    layers, heads, weights = one.with_summaries()
    assert layers == ["1", "3", "all"]
    assert heads == ["0", "1", "2", "3", "mean", "max"]
    torch.testing.assert_close(weights[0, 4], one.weights[0].mean(0))
    torch.testing.assert_close(weights[1, 5], one.weights[1].amax(0))
    torch.testing.assert_close(weights[2, 4:], torch.stack([one.weights.mean((0, 1)), one.weights.amax((0, 1))]))
    torch.testing.assert_close(weights[2, 1], one.weights[:, 1].mean(0))


@torch.no_grad()
@pytest.mark.parametrize("name", OF_SEGMENTS)
def test_weights_of_segments_give_the_modules_output_and_their_mean(name: str) -> None:
    """Weights times values, through out_proj, in every layer; the mean is over layers, heads, segments that ask."""

    def check(module: Any, inputs: tuple[Tensor, Any], output: Tensor) -> None:
        x, layout = inputs
        weights = module.weights(x, layout)
        memory = x if layout.representatives is None else layout.representatives.gather(x)
        values = module.v_proj(memory).unflatten(-1, (module.num_heads, -1))
        out = module.out_proj(torch.einsum("bhij,bjhe->bihe", weights, values).flatten(2))
        torch.testing.assert_close(out, output, atol=1e-5, rtol=1e-5)
        seen.append(weights)

    model, tokens, seen = model_of(name), documents([29]), list[Tensor]()
    recorder, weights = segment_weights(model, tokens)
    (layers,) = {one.layers for one in recorder.maps()}
    all_segments_ask = "hierarchical" in MODELS[name][0]
    assert layers == ((1, 2, 3) if all_segments_ask else (0, 1))
    for layer in layers:
        module = model.core.layers[layer]
        attention = module.cross_segment.self_attn if all_segments_ask else module.sentence_attn
        attention.register_forward_hook(check)
    model(tokens, features_only=True)
    assert len(seen) == len(layers)
    assert min(float(weights.std()) for weights in seen) > 0.05
    by_hand = torch.cat([weights[0] if all_segments_ask else weights[0, :, :1] for weights in seen]).mean(dim=(0, 1))
    torch.testing.assert_close(torch.tensor([each["weight"] for each in weights]), by_hand)


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["attentive", "first", "mean"])
def test_share_of_max_pooling(pooling: str) -> None:
    model, tokens = model_of("by length"), documents([54])
    states = model(tokens, classification_head_name="topic")[1]["spans"][0].tolist()  # S x C
    channels = [[state[channel] for state in states] for channel in range(24)]
    winners = [values.index(max(values)) for values in channels]
    shares = [each["share"] for each in segment_weights(model, tokens)[1]]
    assert shares == pytest.approx([winners.count(unit) / 24 for unit in range(9)])
    assert len(set(shares)) > 2
    assert [*segment_weights(model_of("by length", f"--pooling {pooling}"), documents([20]))[1][0]] == ["weight"]


def test_models_without_attention_between_segments() -> None:
    assert [*segment_weights(model_of("by length", "--layout S|S"), documents([20]))[1][0]] == ["share"]
    assert segment_weights(model_of("tokens ask", "--no-hierarchy"), documents([20]))[1] == []


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([BOS, 9, 9, 9, 9, 9, 9, BOS, 9, 2], [[0] * 6 + [1] * 4, [0] * 6 + [1] + [2] * 3, [0] * 7 + [1] * 3]),
        ([9, BOS, 9, 2], [[0] * 4, [0, 1, 1, 1], [0, 1, 1, 1]]),
    ],
)
def test_units_of_tokens(tokens: list[Any], expected: list[Any]) -> None:
    for name, numbers in zip(("by length", "by marker", "tokens ask"), expected, strict=True):
        assert units(encoder_of(name), torch.tensor([tokens]))[1].tolist() == numbers
