"""Encoder and decoder layers with sentences are their dense definition."""

import pytest
import references
import torch
from helpers import assert_same_run, padding, states
from layouts import layout_of
from torch import Tensor

from hat_fairseq.modules.attention import AttentionSizes, FullAttention
from hat_fairseq.modules.layers import QUERIES, EncoderLayer, HierarchicalDecoderLayer, LayerSizes, SentenceAttention
from hat_fairseq.networks.encoder import EncoderOut
from hat_fairseq.networks.hat import HierarchicalEncoder

SCHEMES = pytest.mark.parametrize("normalize_before", [False, True], ids=["post-norm", "pre-norm"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])

HEADS = AttentionSizes(24, 4)


def sizes(normalize_before: bool) -> LayerSizes:
    return LayerSizes(24, 40, 4, dropout=0.0, normalize_before=normalize_before)


def random_norms(module: torch.nn.Module) -> None:
    """Layer norms at their initial 1 and 0 could be swapped without a test noticing."""
    for name, parameter in module.named_parameters():
        if "layer_norm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)


def starts_of(sentences: list[list[int]], length: int) -> Tensor:
    """(B, T) True at the given positions."""
    return torch.tensor([[place in where for place in range(length)] for where in sentences])


# (tokens, positions of the sentences) of the documents of a batch
BATCHES = [
    [(1, [0])],
    [(13, [0, 5, 11]), (13, [0]), (1, [0]), (8, [2, 7])],
    [(31, list(range(0, 31, 4))), (29, [0, 28]), (5, [0, 1, 2, 3, 4])],
]


@SCHEMES
@DTYPES
@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: "-".join(str(length) for length, _ in batch))
def test_encoder_layer_with_sentences_is_its_definition(
    normalize_before: bool, dtype: torch.dtype, queries: str, batch: list[tuple[int, list[int]]]
) -> None:
    """Batched and padded equals each document alone, dense: outputs and gradients."""
    torch.manual_seed(0)
    layer = EncoderLayer(
        sizes(normalize_before), FullAttention(HEADS), SentenceAttention(AttentionSizes(24, 4)), queries
    ).to(dtype)
    random_norms(layer)
    mask = padding([length for length, _ in batch])
    x = states(*mask.shape, 24, dtype=dtype)
    layout = layout_of(starts_of([where for _, where in batch], mask.size(1)), mask)

    def dense() -> Tensor:
        rows = [references.hierarchical_encoder_layer(layer, x[i, :n], where) for i, (n, where) in enumerate(batch)]
        return torch.cat(rows)

    assert_same_run(layer, [x], lambda: layer(x, layout)[~mask], dense, dtype)


@SCHEMES
@DTYPES
def test_decoder_layer_with_sentences_is_its_definition(normalize_before: bool, dtype: torch.dtype) -> None:
    """Batched and padded equals each document alone, dense; 3 hypotheses a document."""
    torch.manual_seed(1)
    lengths = [(13, 5), (1, 1), (8, 8)]
    layer = HierarchicalDecoderLayer(sizes(normalize_before)).to(dtype)
    random_norms(layer)
    documents, beam = len(lengths), 3
    x = states(documents * beam, 6, 24, dtype=dtype)
    tokens = states(documents, max(n for n, _ in lengths), 24, dtype=dtype)
    sentences = states(documents, max(n for _, n in lengths), 24, dtype=dtype)
    masks = padding([n for n, _ in lengths]), padding([n for _, n in lengths])

    def dense() -> Tensor:
        rows = []
        for row in range(len(x)):
            num_tokens, num_sentences = lengths[row // beam]
            memory = tokens[row // beam, :num_tokens], sentences[row // beam, :num_sentences]
            rows.append(references.decoder_layer(layer, x[row], *memory))
        return torch.stack(rows)

    assert_same_run(
        layer, [x, tokens, sentences], lambda: layer(x, EncoderOut(tokens, masks[0], sentences, masks[1])), dense, dtype
    )


@SCHEMES
@DTYPES
def test_hierarchical_encoder_is_its_definition(normalize_before: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    layers = [EncoderLayer(sizes(normalize_before), FullAttention(HEADS)) for _ in range(2)]
    module = HierarchicalEncoder(layers, torch.nn.LayerNorm(24) if normalize_before else None).to(dtype)
    random_norms(module)
    x = states(4, 11, 24, dtype=dtype)
    sentences = [[0, 3, 10], [0], list(range(11)), [2, 5]]
    layout = layout_of(starts_of(sentences, 11))
    assert layout.representatives is not None
    assert layout.representatives.padding is not None
    mask = layout.representatives.padding

    def dense() -> Tensor:
        rows = [references.hierarchical_encoder(module, x[i], sentences[i]) for i in range(4)]
        return torch.cat(rows)

    assert_same_run(module, [x], lambda: module(x, layout)[~mask], dense, dtype)
