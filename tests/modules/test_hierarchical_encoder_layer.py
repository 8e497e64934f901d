"""The encoder layer with sentence attention: its dense definition, and what it reduces to."""

from __future__ import annotations

import pytest
import references
import torch
from helpers import assert_same_run, padding
from layouts import layout_of
from torch import Tensor

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.layers import QUERIES, EncoderLayer, LayerSizes, SentenceAttention

SCHEMES = pytest.mark.parametrize("normalize_before", [False, True], ids=["post-norm", "pre-norm"])
WHO_ASKS = pytest.mark.parametrize("queries", QUERIES)
# (tokens, positions of the sentences) of the documents of a batch
BATCHES = [
    [(1, [0])],
    [(7, [0, 3, 6]), (2, [0]), (5, [0, 1, 2, 3, 4])],
    [(13, [0, 5, 11]), (13, [0]), (1, [0]), (8, [2, 7])],
    [(31, list(range(0, 31, 4))), (29, [0, 28])],
]


def encoder_layer(sizes: LayerSizes, queries: str) -> EncoderLayer:
    numbers = sizes.embed_dim, sizes.num_heads
    return EncoderLayer(sizes, FullAttention(*numbers), SentenceAttention(*numbers), queries)


def build(normalize_before: bool, queries: str) -> EncoderLayer:
    torch.manual_seed(0)
    layer = encoder_layer(LayerSizes(24, 40, 4, dropout=0.0, normalize_before=normalize_before), queries)
    for name, parameter in layer.named_parameters():
        if "layer_norm" in name:  # at their initial 1 and 0 two norms could be swapped without a test noticing
            torch.nn.init.normal_(parameter, 0.5, 0.5)
    return layer


def starts_of(batch: list[tuple[int, list[int]]]) -> Tensor:
    starts = torch.zeros(len(batch), max(length for length, _ in batch), dtype=torch.bool)
    for row, (_, where) in zip(starts, batch, strict=True):
        row[where] = True
    return starts


def states(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


@SCHEMES
@WHO_ASKS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: "-".join(str(length) for length, _ in batch))
def test_layer_is_its_definition(normalize_before: bool, queries: str, dtype: torch.dtype, batch: list) -> None:
    """Batched and padded equals each document alone, dense: outputs and gradients."""
    layer = build(normalize_before, queries).to(dtype)
    mask = padding([length for length, _ in batch])
    x = states(*mask.shape, 24).detach().to(dtype).requires_grad_()
    layout = layout_of(starts_of(batch), mask)

    def dense() -> Tensor:
        rows = [references.hierarchical_encoder_layer(layer, x[i, :n], where) for i, (n, where) in enumerate(batch)]
        return torch.cat(rows)

    assert_same_run(layer, [x], lambda: layer(x, layout)[~mask], dense, dtype)
