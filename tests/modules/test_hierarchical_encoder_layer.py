"""The encoder layer with sentence attention: its dense definition, and what it reduces to."""

from __future__ import annotations

import pytest
import references
import torch
from helpers import assert_close, assert_same_run, padding
from layouts import layout_of
from torch import Tensor

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout
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


@SCHEMES
def test_where_every_token_is_a_sentence_both_kinds_of_queries_agree(normalize_before: bool) -> None:
    tokens, bos = build(normalize_before, "tokens"), build(normalize_before, "bos")
    bos.load_state_dict(tokens.state_dict())
    x, layout = states(3, 9, 24), layout_of(torch.ones(3, 9, dtype=torch.bool))
    assert_close(tokens(x, layout), bos(x, layout))


def test_bos_queries_leave_the_other_tokens_as_a_plain_layer_makes_them() -> None:
    layer = build(True, "bos")
    plain = EncoderLayer(layer.sizes, FullAttention(24, 4))
    plain.load_state_dict({name: t for name, t in layer.state_dict().items() if "sentence_attn" not in name})
    x, starts = states(2, 9, 24), torch.zeros(2, 9, dtype=torch.bool)
    starts[:, [0, 4]] = True
    out, expected = layer(x, layout_of(starts)), plain(x, BatchLayout())
    assert_close(out[~starts], expected[~starts])
    assert not torch.allclose(out[starts], expected[starts], atol=1e-2)


@WHO_ASKS
def test_a_silent_sentence_attention_is_a_plain_pre_norm_layer(queries: str) -> None:
    layer = build(True, queries)
    with torch.no_grad():
        layer.sentence_attn.out_proj.weight.zero_()
    plain = EncoderLayer(layer.sizes, FullAttention(24, 4))
    plain.load_state_dict({name: t for name, t in layer.state_dict().items() if "sentence_attn" not in name})
    x, mask = states(2, 7, 24), padding([7, 3])
    layout = layout_of(starts_of([(7, [0, 2]), (3, [0])]), mask)
    assert_close(layer(x, layout)[~mask], plain(x, layout)[~mask])
