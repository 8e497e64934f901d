"""`--encoder-attention`: what holds for every attention of the table."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from building import PAD, TINY, TINY_ENCODER, build, documents, targets
from helpers import assert_close, assert_same_run, outputs_and_gradients, padding
from layouts import dense
from torch import Tensor

from hat_fairseq.modules.batch_layout import BatchLayout, representatives_at
from hat_fairseq.modules.layers import EncoderLayer, LayerSizes
from hat_fairseq.modules.options import read
from hat_fairseq.modules.pooling_attention import PoolingAttention
from hat_fairseq.networks.config import entry, parse_layers

CASES: dict[str, dict[str, Any]] = {
    "full": {},
    "segments": {"segment_length": 5},
    "window": {"attention_window": 3},
    "window global": {"attention_window": 33, "global_tokens": "first"},
    "pooling": {"attention_window": 2, "pooling_window": 9},
    "pooling global": {"attention_window": 40, "pooling_window": 100, "global_tokens": "first"},
    "pooling mean": {"attention_window": 3, "pooling_window": 6, "key_pooling": "mean", "pooling_kernel": 7},
    "pooling max": {"pooling_window": 8, "attention_window": 5, "key_pooling": "max", "pooling_stride": 8},
    "pooling mean-ldconv mix": {
        "attention_window": 1,
        "pooling_window": 3,
        "key_pooling": "mean-ldconv",
        "pooling_kernel": 1,
        "pooling_variant": "mix",
    },
    "pooling share-weights": {"attention_window": 4, "pooling_window": 300, "pooling_variant": "share-weights"},
    "pooling token": {"attention_window": 2, "pooling_window": 9, "pooling_cells": "token"},
    "pooling token mix": {
        "attention_window": 3,
        "pooling_window": 12,
        "pooling_cells": "token",
        "pooling_kernel": 3,
        "pooling_stride": 2,
        "pooling_variant": "mix",
    },
    "block-sparse": {"sparse_block": 4, "sparse_random": 1},
    "block-sparse front": {"sparse_block": 3, "sparse_first": 2, "sparse_last": 0, "sparse_random": 2},
    "block-sparse without random blocks": {"sparse_block": 8, "sparse_random": 0, "sparse_window": 1},
}
NAMES = pytest.mark.parametrize("name", CASES)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
LENGTHS = [[1], [4], [5], [6], [7, 3, 1], [31, 10, 29, 5], [64, 63], [149], [257, 128, 129, 35]]
MODELS = {
    "hat_bart": ("hat_bart_base", TINY),
    "hat_bart plain": ("hat_bart_base", f"{TINY} --no-hierarchy"),
    "hat_roberta": ("hat_roberta_base", TINY_ENCODER),
}


def attention_of(name: str, dtype: torch.dtype = torch.float32, dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    attention = read(entry(name.split()[0]), Namespace(**CASES[name])).build(24, 4, dropout)
    for key, parameter in attention.named_parameters():
        if "pooling" in key:  # zeros at first
            torch.nn.init.normal_(parameter)
    return attention.to(dtype)


def layout_for(name: str, mask: Tensor | None = None, rows: int = 1, length: int = 0) -> BatchLayout:
    """Of rows with this padding mask, or of unpadded rows; with global tokens for the cases that have them."""
    empty = mask is not None and bool(mask.all(dim=1).any())
    if "global" not in name:
        return BatchLayout(mask, empty_rows=empty)
    is_global = torch.zeros(rows, length, dtype=torch.bool) if mask is None else torch.zeros_like(mask)
    is_global[:, [position for position in (0, 2, 70) if position < is_global.size(1)]] = True
    is_global &= ~(torch.zeros_like(is_global) if mask is None else mask)
    counts = is_global.sum(dim=1)
    return BatchLayout(
        mask, global_tokens=representatives_at(is_global, int(counts.max()), int(counts.min())), empty_rows=empty
    )


def states(lengths: list[int], dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(sum(lengths))
    return torch.randn(len(lengths), max(lengths), 24, generator=generator).to(dtype).requires_grad_()


@NAMES
@DTYPES
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_an_attention_is_dense_attention_under_its_pattern(name: str, dtype: torch.dtype, lengths: list[int]) -> None:
    attention, x, mask = attention_of(name, dtype), states(lengths, dtype), padding(lengths)
    layout = layout_for(name, mask if mask.any() else None, *x.shape[:2])
    assert_same_run(
        attention, [x], lambda: attention(x, layout)[~mask], lambda: torch.cat(dense(attention, x, layout)), dtype
    )


@NAMES
def test_alone_equals_batched_and_more_padding_changes_nothing(name: str) -> None:
    attention, lengths = attention_of(name), [131, 10, 79, 5]
    x, mask = states(lengths), padding(lengths)
    batched = attention(x, layout_for(name, mask))
    wider = attention(torch.nn.functional.pad(x, (0, 0, 0, 9)), layout_for(name, padding(lengths, 140)))
    for row, length in enumerate(lengths):
        alone = attention(x[row : row + 1, :length], layout_for(name, None, 1, length))[0]
        assert_close(batched[row, :length], alone)
        assert_close(wider[row, :length], alone)


@NAMES
def test_a_gradient_reaches_allowed_keys_only(name: str) -> None:
    attention, x, length = attention_of(name), states([150]), torch.arange(150)
    layout = layout_for(name, None, 1, 150)
    allowed = attention.allowed(torch.tensor([[90]]), length[None], layout).reshape(-1, 150).any(dim=0)
    if isinstance(attention, PoolingAttention) and attention.level.variant != "mix":
        # The second level reads what the first level has gathered.
        first_level = super(PoolingAttention, attention).allowed(length[:, None], length[None], layout)
        allowed = first_level.reshape(-1, 150, 150)[0][allowed].any(dim=0)
    attention(x, layout)[0, 90].sum().backward()
    assert x.grad is not None
    reached = x.grad[0].abs().sum(dim=1) > 0
    if "max" in name:  # not every token of a cell is the maximum of a channel
        assert reached.sum() > allowed.sum() / 2 and not (reached & ~allowed).any()
        return
    assert torch.equal(reached, allowed | (length == 90))


@NAMES
def test_rows_of_nothing_but_padding_are_finite(name: str) -> None:
    attention, x = attention_of(name), states([90, 90])
    layout = layout_for(name, padding([90, 0]))
    out, gradients = outputs_and_gradients(attention, [x], lambda: attention(x, layout))
    assert out.isfinite().all() and all(gradient.isfinite().all() for gradient in gradients.values())


@NAMES
def test_checkpointing_changes_no_number(name: str) -> None:
    layer = EncoderLayer(LayerSizes(24, 40, 4, dropout=0.3), attention_of(name, dropout=0.3))
    x, layout, runs = states([73, 7]), layout_for(name, padding([73, 7])), []
    for checkpoint in (False, True):
        torch.manual_seed(3)
        from hat_fairseq.networks.encoder import run_layer

        runs.append(outputs_and_gradients(layer, [x], lambda c=checkpoint: run_layer(layer, x, layout, checkpoint=c)))
    assert torch.equal(runs[0][0], runs[1][0])
    assert all(torch.equal(gradient, runs[1][1][key]) for key, gradient in runs[0][1].items())


def model_of(name: str, attention: str, extra: str = "") -> Any:
    arch, flags = MODELS[name]
    options = "".join(f" --{key.replace('_', '-')} {value}" for key, value in CASES[attention].items())
    return build(arch, f"{flags} --encoder-attention {attention.split()[0]}{options}{extra}").eval()


def run(model: Any, source: Tensor) -> Tensor:
    if hasattr(model, "decoder"):
        return model(source, None, targets(len(source), 8))[0]
    if "topic" not in model.classification_heads:
        torch.manual_seed(1)
        model.register_classification_head("topic", num_classes=3)
        model.eval()
    return model(source, classification_head_name="topic")[0]


@NAMES
@pytest.mark.parametrize("model_name", MODELS)
def test_models_take_it(model_name: str, name: str) -> None:
    """Padding on either side, batch mates and checkpointing change nothing; every parameter gets a gradient."""
    model, lengths = model_of(model_name, name), [17, 9, 2]
    source = documents(lengths)
    batched = run(model, source)
    left = torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in source])
    assert_close(run(model, left), batched)
    for row, length in enumerate(lengths):
        target_rows = slice(row, row + 1)
        if hasattr(model, "decoder"):
            alone = model(source[target_rows, :length], None, targets(3, 8)[target_rows])[0]
        else:
            alone = run(model, source[target_rows, :length])
        assert_close(batched[target_rows], alone)
    batched.square().sum().backward()
    missing = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not missing
    checkpointed = model_of(model_name, name, " --checkpoint-activations")
    checkpointed.load_state_dict(model.state_dict(), strict=hasattr(model, "decoder"))
    if hasattr(model, "decoder"):
        assert_close(run(checkpointed, source), batched)


@NAMES
@pytest.mark.parametrize("model_name", ["hat_bart", "hat_bart plain"])
@torch.no_grad()
def test_incremental_decoding_is_unaffected(model_name: str, name: str) -> None:
    model, source, target = model_of(model_name, name), documents([17, 9]), targets(2, 6)
    encoder_out, state = model.encoder(source), {}
    full = model.decoder(target, encoder_out)[0]
    steps = [model.decoder(target[:, : i + 1], encoder_out, incremental_state=state)[0] for i in range(6)]
    assert_close(torch.cat(steps, dim=1), full)


@pytest.mark.parametrize("model_name", MODELS)
def test_a_pattern_changes_the_output_and_no_name(model_name: str) -> None:
    models = [model_of(model_name, name) for name in ("full", "segments", "window")]
    assert len({tuple(model.state_dict()) for model in models}) == 1
    for model in models:
        torch.manual_seed(2)
        for parameter in model.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.3)  # at 0.02 all patterns would look alike
    out = [run(model, documents([31])) for model in models]
    assert not torch.allclose(out[0], out[1], atol=1e-4) and not torch.allclose(out[0], out[2], atol=1e-4)


def test_layers_may_differ() -> None:
    model = model_of("hat_bart", "segments", " --encoder-attention-layers 1")
    assert [type(layer.self_attn).__name__ for layer in model.encoder.layers] == ["FullAttention", "SegmentAttention"]
    assert parse_layers("0,6-8", 12) == {0, 6, 7, 8} and parse_layers(None, 2) == {0, 1}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--encoder-attention sliding", "--encoder-attention sliding: unknown; choose one of full, segments"),
        ("--encoder-attention window --pooling-window 8", "--pooling-window has no effect with --encoder-attention w"),
        ("--encoder-attention segments --global-tokens first", "--global-tokens has no effect with"),
        ("--encoder-attention window --attention-window 0", "--attention-window 0: it must be at least 1"),
        (
            "--encoder-attention pooling --pooling-window 3",
            "--pooling-window 3: with --pooling-kernel 5 and --pooling-stride 4 it must be at",
        ),
        ("--encoder-attention pooling --pooling-stride 0", "--pooling-stride 0: it must be at least 1"),
        ("--encoder-attention segments --encoder-attention-layers 2", "has layers 0 to 1"),
        ("--encoder-attention segments --encoder-attention-layers 1-", "write layers as 0,6-8"),
        ("--encoder-attention segments --encoder-attention-layers 1-0", "has layers 0 to 1"),
        ("--segment-length 8", "--segment-length has no effect with --encoder-attention full; remove it"),
        ("--encoder-attention segments --segment-length 0", "--segment-length 0: it must be at least 1"),
    ],
)
def test_wrong_flags_are_refused(flags: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build("hat_bart_base", f"{TINY} {flags}")
