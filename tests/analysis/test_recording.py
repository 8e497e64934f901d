"""Recorded attention is the module's own, in every system that has some to show, and is summed over units."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import TINY, TINY_ENCODER, build, documents
from torch import Tensor

from hat_fairseq.analysis.look import AttentionMap
from hat_fairseq.analysis.recording import Recorder, averaged, summed
from hat_fairseq.modules.pooling_attention import PoolingAttention

SEGMENTS = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --segment-length 6 --max-segments 9 "
    "--layout S|SD|D|SD"
)
POOLING = f"{TINY_ENCODER} --encoder-attention-layers 0-1 --attention-window 4 --pooling-window 10 --max-positions 80"
SPARSE = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 0 --max-positions 80"
# Name -> architecture, flags, what it shows, a unit
MODELS = {
    "hat_roberta": ("hat_roberta_base", TINY_ENCODER, "attention to sentences", "sentence"),
    "bos asks": ("hat_roberta_base", f"{TINY_ENCODER} --sentence-queries bos", "attention to sentences", "sentence"),
    "segments": ("hierarchical_transformer", SEGMENTS, "attention among segments", "segment"),
    "markers": ("hierarchical_transformer", f"{SEGMENTS} --segment-by marker", "attention among segments", "segment"),
    "pooling": ("poolingformer_base", POOLING, "attention to pooled tokens", "sentence"),
    "ernie_sparse": ("ernie_sparse_base", SPARSE, "attention among representatives", "block"),
    "own weights": (
        "ernie_sparse_base",
        f"{SPARSE} --representative-weights separate --representative-update residual",
        "attention among representatives",
        "block",
    ),
    "hat_bart": ("hat_bart_base", TINY, "attention among sentences", "sentence"),
}


def encoder_of(name: str) -> Any:
    arch, flags, _, _ = MODELS[name]
    model = build(arch, flags)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)  # at 0.02 all weights would be nearly alike
    return (model.encoder if hasattr(model, "decoder") else model.core).eval()


@pytest.mark.parametrize("length", [37, 3])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_what_is_recorded(name: str, length: int) -> None:
    encoder, tokens = encoder_of(name), documents([length])
    plain = encoder(tokens).tokens
    with Recorder(encoder, tokens) as recorder:
        recorded = encoder(tokens).tokens
    assert torch.equal(plain, recorded) and torch.equal(plain, encoder(tokens).tokens)
    (found,) = recorder.maps()
    no_markers = name == "pooling" and length == 3
    assert (found.name, recorder.unit) == (MODELS[name][2], "block" if no_markers else MODELS[name][3])
    units = recorder.num_units
    assert found.weights.shape[2:] == (units, units) and found.queries == "source"
    assert recorder.numbers.shape == (length,) and recorder.numbers.max() == units - 1
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(found.weights.shape[:3]))
    if length == 37:
        assert units > 4 and found.weights.std() > 0.02


@pytest.mark.parametrize("name", ["ernie_sparse", "own weights"])
@torch.no_grad()
def test_weights_among_representatives_give_the_layers_output(name: str) -> None:
    encoder, tokens, seen = encoder_of(name), documents([37]), []

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

    for layer in encoder.layers:
        layer.register_forward_hook(check)
    encoder(tokens)
    assert len(seen) == 2


@pytest.mark.parametrize(
    "variant", ["", " --pooling-variant mix", " --pooling-variant share-weights", " --pooling-cells token"]
)
@torch.no_grad()
def test_weights_on_cells_give_the_second_level(variant: str) -> None:
    torch.manual_seed(0)
    model = build("poolingformer_base", POOLING + variant).eval()
    attention = model.core.layers[0].self_attn
    assert isinstance(attention, PoolingAttention)
    x = torch.randn(1, 37, 24) * 3
    layout = model.core.arrange(documents([37])).layout
    weights = attention.weights(x, layout)
    first = super(PoolingAttention, attention).output_of_heads(x, layout)
    y = x if "mix" in variant else first
    projections = attention if "share" in variant else attention.pooled
    values = attention.pooled.value_pooling(attention.heads(projections.v_proj(y)), attention._cells(x, layout)[0])
    level = torch.einsum("bhtm,bhme->bthe", weights, values).flatten(2)
    torch.testing.assert_close(first + level, attention.output_of_heads(x, layout), atol=1e-5, rtol=1e-5)
    middle = attention.middle_tokens(weights.size(-1))
    # Of tokens 0 to 4, 1 to 5, 2 to 6; with the cells of the document of tokens 0 to 4, 4 to 8, 8 to 12.
    assert middle[:3].tolist() == ([2, 3, 4] if "token" in variant else [2, 6, 10])


def test_sums_and_means() -> None:
    numbers = torch.tensor([0, 0, -1, 1])
    weights = torch.tensor([[[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [1.0, 0, 0, 0], [0, 0, 0, 1.0]]])
    by_key = summed(weights, numbers, 2)
    torch.testing.assert_close(by_key, torch.tensor([[[0.3, 0.4], [0.7, 0.1], [1.0, 0.0], [0.0, 1.0]]]))
    torch.testing.assert_close(averaged(by_key, numbers, 2), torch.tensor([[[0.5, 0.25], [0.0, 1.0]]]))


def test_means_and_maxima_of_heads_and_layers() -> None:
    one = AttentionMap("x", "source", (1, 3), torch.rand(2, 4, 3, 5))
    layers, heads, weights = one.with_summaries()
    assert layers == ["1", "3", "all"] and heads == ["0", "1", "2", "3", "mean", "max"]
    torch.testing.assert_close(weights[0, 4], one.weights[0].mean(0))
    torch.testing.assert_close(weights[1, 5], one.weights[1].amax(0))
    torch.testing.assert_close(weights[2, 4], one.weights.mean((0, 1)))
    torch.testing.assert_close(weights[2, 5], one.weights.amax((0, 1)))
    torch.testing.assert_close(weights[2, 1], one.weights[:, 1].mean(0))
