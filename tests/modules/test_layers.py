"""Encoder and decoder layers: equal to fairseq's without sentences, and to their dense definition with them."""

from argparse import Namespace
from typing import Any

import pytest
import references
import torch
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from helpers import assert_close, assert_same_run, outputs_and_gradients, padding
from layouts import layout_of
from torch import Tensor

from hat_fairseq.modules.attention import FullAttention, mask_of_keys
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.cache import DecoderCache
from hat_fairseq.modules.layers import EncoderLayer, HierarchicalDecoderLayer, LayerSizes
from hat_fairseq.networks.hat import HierarchicalEncoder

SCHEMES = pytest.mark.parametrize("normalize_before", [False, True], ids=["post-norm", "pre-norm"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def sizes(normalize_before: bool, activation: str = "relu") -> LayerSizes:
    return LayerSizes(24, 40, 4, dropout=0.0, activation=activation, normalize_before=normalize_before)


def fairseq_config(normalize_before: bool, activation: str) -> Any:
    both: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        both |= {f"{side}_embed_dim": 24, f"{side}_ffn_embed_dim": 40, f"{side}_attention_heads": 4}
        both |= {f"{side}_normalize_before": normalize_before}
    return TransformerConfig.from_namespace(Namespace(dropout=0.0, activation_fn=activation, **both))


def states(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype).requires_grad_()


def visible(mask: Tensor) -> Tensor | None:
    return mask_of_keys(mask, torch.float32)


def random_norms(module: torch.nn.Module) -> None:
    """Layer norms at their initial 1 and 0 could be swapped without a test noticing."""
    for name, parameter in module.named_parameters():
        if "layer_norm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)


@SCHEMES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_equals_fairseq(normalize_before: bool, activation: str) -> None:
    torch.manual_seed(0)
    layer = EncoderLayer(sizes(normalize_before, activation), FullAttention(24, 4))
    random_norms(layer)
    fairseq_module = TransformerEncoderLayerBase(fairseq_config(normalize_before, activation))
    fairseq_module.load_state_dict(layer.state_dict())
    x, mask = states(3, 7, 24), padding([7, 3, 1])
    out, gradients = outputs_and_gradients(layer, [x], lambda: layer(x, BatchLayout(mask)))
    expected, expected_gradients = outputs_and_gradients(
        fairseq_module, [x], lambda: fairseq_module(x.transpose(0, 1), mask).transpose(0, 1)
    )
    assert_close(out, expected)
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        assert_close(gradient, expected_gradients[name])


@SCHEMES
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_decoder_layer_without_sentences_equals_fairseq(normalize_before: bool, activation: str) -> None:
    torch.manual_seed(0)
    layer = HierarchicalDecoderLayer(sizes(normalize_before, activation), sentences=False)
    random_norms(layer)
    fairseq_module = TransformerDecoderLayerBase(fairseq_config(normalize_before, activation))
    fairseq_module.load_state_dict(layer.state_dict())  # strict: the same tensors, no more and no less
    x, tokens, mask = states(3, 5, 24), states(3, 9, 24), padding([9, 4, 1])
    future = torch.full((5, 5), float("-inf")).triu(1)

    def fairseq_layer() -> Tensor:
        return fairseq_module(x.transpose(0, 1), tokens.transpose(0, 1), mask, self_attn_mask=future)[0].transpose(0, 1)

    out, gradients = outputs_and_gradients(layer, [x, tokens], lambda: layer(x, tokens, visible(mask)))
    expected, expected_gradients = outputs_and_gradients(fairseq_module, [x, tokens], fairseq_layer)
    assert_close(out, expected)
    assert gradients.keys() == expected_gradients.keys()
    for name, gradient in gradients.items():
        assert_close(gradient, expected_gradients[name])


@SCHEMES
@DTYPES
@pytest.mark.parametrize("lengths", [[(1, 1)], [(7, 1), (4, 3)], [(13, 5), (1, 1), (8, 8)]])
def test_decoder_layer_with_sentences_is_its_definition(
    normalize_before: bool, dtype: torch.dtype, lengths: list[tuple[int, int]]
) -> None:
    """Batched and padded equals each document alone, dense; 3 hypotheses a document."""
    torch.manual_seed(1)
    layer = HierarchicalDecoderLayer(sizes(normalize_before)).to(dtype)
    random_norms(layer)
    documents, beam = len(lengths), 3
    x = states(documents * beam, 6, 24, dtype=dtype)
    tokens = states(documents, max(n for n, _ in lengths), 24, dtype=dtype)
    sentences = states(documents, max(n for _, n in lengths), 24, dtype=dtype)
    masks = visible(padding([n for n, _ in lengths])), visible(padding([n for _, n in lengths]))

    def dense() -> Tensor:
        rows = []
        for row in range(len(x)):
            num_tokens, num_sentences = lengths[row // beam]
            memory = tokens[row // beam, :num_tokens], sentences[row // beam, :num_sentences]
            rows.append(references.decoder_layer(layer, x[row], *memory))
        return torch.stack(rows)

    assert_same_run(
        layer, [x, tokens, sentences], lambda: layer(x, tokens, masks[0], sentences, masks[1]), dense, dtype
    )


@SCHEMES
def test_incremental_decoder_layer_equals_full(normalize_before: bool) -> None:
    torch.manual_seed(2)
    layer = HierarchicalDecoderLayer(sizes(normalize_before)).eval()
    x, tokens, sentences = states(4, 6, 24), states(2, 9, 24), states(2, 3, 24)
    memory = tokens, visible(padding([9, 5])), sentences, visible(padding([3, 2]))
    full = layer(x, *memory)
    cache = DecoderCache(1)
    steps = []
    for i in range(6):
        steps.append(layer(x[:, i : i + 1], *memory, cache=cache.layers[0]))
    assert_close(torch.cat(steps, 1), full)


@SCHEMES
@DTYPES
@pytest.mark.parametrize("num_layers", [1, 2])
def test_hierarchical_encoder_is_its_definition(normalize_before: bool, dtype: torch.dtype, num_layers: int) -> None:
    torch.manual_seed(3)
    layers = [EncoderLayer(sizes(normalize_before), FullAttention(24, 4)) for _ in range(num_layers)]
    module = HierarchicalEncoder(layers, torch.nn.LayerNorm(24) if normalize_before else None).to(dtype)
    random_norms(module)
    x = states(4, 11, 24, dtype=dtype)
    starts = torch.zeros(4, 11, dtype=torch.bool)
    for row, where in enumerate([[0, 3, 10], [0], list(range(11)), [2, 5]]):
        starts[row, where] = True
    layout = layout_of(starts)
    assert layout.representatives is not None and layout.representatives.padding is not None
    mask = layout.representatives.padding

    def dense() -> Tensor:
        rows = [references.hierarchical_encoder(module, x[i], starts[i].nonzero()[:, 0].tolist()) for i in range(4)]
        return torch.cat(rows)

    assert_same_run(module, [x], lambda: module(x, layout)[~mask], dense, dtype)
