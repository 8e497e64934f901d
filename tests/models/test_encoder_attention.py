"""`--encoder-attention`: what holds for every attention of the table."""

from argparse import Namespace
from typing import Any

import pytest
import torch
from attention_cases import ATTENTION_CASES
from building import PAD, TINY, build, documents, targets
from helpers import assert_close, assert_same_run, outputs_and_gradients, padding
from layouts import dense
from torch import Tensor

from hat_fairseq.modules import layers
from hat_fairseq.modules.attention import AttentionSizes, Projections
from hat_fairseq.modules.batch_layout import BatchLayout, representatives_at
from hat_fairseq.networks.config import ATTENTIONS, EncoderConfig
from hat_fairseq.networks.families import parse_layers
from hat_fairseq.options import read_options

NAMES = pytest.mark.parametrize("name", ATTENTION_CASES)
PARTS = {
    "": Projections(),
    "rotary": Projections(rotary=100.0),
    "grouped keys": Projections(kv_heads=2),
    "one key, rotary, no biases": Projections(kv_heads=1, rotary=10000.0, bias=False),
}
LENGTHS = [[1], [5], [7, 3, 1], [31, 10, 29, 5], [257, 128, 129, 35]]


def attention_of(name: str, dtype: torch.dtype = torch.float32, dropout: float = 0.0, parts: str = "") -> Any:
    torch.manual_seed(0)
    config = read_options(EncoderConfig, Namespace(**ATTENTION_CASES[name]))
    attention = ATTENTIONS[name.split()[0]].build(config, AttentionSizes(24, 4, dropout), 0)
    attention.configure(PARTS[parts])
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
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_an_attention_is_dense_attention_under_its_pattern(name: str, lengths: list[int], parts: str) -> None:
    """Each document alone; in bf16 one batch."""
    for dtype in (torch.float32, torch.bfloat16)[: 1 + (lengths == LENGTHS[-2])]:
        check_pattern(name, lengths, dtype, parts)


def check_pattern(name: str, lengths: list[int], dtype: torch.dtype, parts: str) -> None:
    attention, x, mask = attention_of(name, dtype, parts=parts), states(lengths, dtype), padding(lengths)
    layout = layout_for(name, mask if mask.any() else None, *x.shape[:2])
    assert_same_run(
        attention, [x], lambda: attention(x, layout)[~mask], lambda: torch.cat(dense(attention, x, layout)), dtype
    )


@NAMES
@pytest.mark.parametrize("length", [200, 4])  # 4: all tokens are in each other's windows
def test_dropout_drops_the_weights_of_every_query(name: str, length: int) -> None:
    """On all levels, also of global tokens: at this rate mostly nothing but the bias is left. In eval mode all is."""
    attention, x = attention_of(name, dropout=0.9999), states([length])
    layout = layout_for(name, rows=1, length=length)
    dropped = torch.stack([attention(x, layout).eq(attention.out_proj.bias).all(dim=2) for _ in range(10)])
    assert float(dropped.double().mean(dim=0).min()) > 0.3
    attention.eval()
    assert not attention(x, layout).eq(attention.out_proj.bias).all(dim=2).any()


@NAMES
def test_rows_of_nothing_but_padding_are_finite(name: str) -> None:
    attention, x = attention_of(name), states([90, 90])
    layout = layout_for(name, padding([90, 0]))
    out, gradients = outputs_and_gradients(attention, [x], lambda: attention(x, layout))
    assert out.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients.values())
    with torch.no_grad():  # other kernels, for which a softmax over no key is NaN
        assert attention(x, layout).isfinite().all()


def model_of(name: str, extra: str = "") -> Any:
    options = "".join(f" --{key.replace('_', '-')} {value}" for key, value in ATTENTION_CASES[name].items())
    return build("hat_bart_base", f"{TINY} --encoder-attention {name.split()[0]}{options}{extra}").eval()


def run(model: Any, source: Tensor, row: int = 0) -> Tensor:
    """The logits for texts of the documents from `row` on."""
    return model(source, None, targets(3, 8)[row : row + len(source)])[0]


@NAMES
def test_a_model_takes_it(name: str) -> None:
    """Padding on either side and batch mates change nothing; every parameter gets a gradient."""
    model, lengths = model_of(name), [17, 9, 2]
    source = documents(lengths)
    batched = run(model, source)
    left = torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in source])
    assert_close(run(model, left), batched)
    for row, length in enumerate(lengths):
        assert_close(batched[row : row + 1], run(model, source[row : row + 1, :length], row))
    batched.square().sum().backward()
    assert not [key for key, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]


@pytest.mark.parametrize("name", [name for name in ATTENTION_CASES if name.startswith(("window", "pooling"))])
@pytest.mark.parametrize("normalize_before", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize("lengths", [[31], [29, 31, 2], [257, 128, 0]], ids=str)
@pytest.mark.parametrize("least", [1, 16])
def test_recomputing_groups_of_tokens_changes_no_number(
    name: str, normalize_before: bool, lengths: list[int], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of one reach and of 16; global tokens need the whole document."""
    monkeypatch.setitem(layers.TOKENS_OF_GROUP, "cpu", 1)
    monkeypatch.setattr(layers, "REACHES_OF_GROUP", least)
    layer, mask = layer_of(name, normalize_before), padding(lengths)
    layout, x = layout_for(name, mask if len(lengths) > 1 else None, 1, max(lengths)), states(lengths, torch.float64)
    reach = layer.reach(layout)
    assert (reach is None) is ("global" in name)
    if reach is not None:
        whole = outputs_and_gradients(layer, [x], lambda: layer(x, layout)[~mask])
        parts = outputs_and_gradients(layer, [x], lambda: layers.run_in_parts(layer, x, layout, reach)[~mask])
        torch.testing.assert_close(parts, whole, rtol=1e-10, atol=1e-12)


def layer_of(name: str, normalize_before: bool, dropout: float = 0.0) -> layers.EncoderLayer:
    sizes = layers.LayerSizes(24, 40, 4, dropout=dropout, normalize_before=normalize_before)
    layer = layers.EncoderLayer(sizes, attention_of(name, dropout=dropout, parts="rotary"))
    for key, parameter in layer.named_parameters():
        if "layer_norm" in key:
            torch.nn.init.normal_(parameter, 0.5, 0.5)
    return layer.double()


@pytest.mark.parametrize("name", ["window", "pooling"])
def test_recomputed_groups_drop_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(layers.TOKENS_OF_GROUP, "cpu", 1)
    layer, x, layout = layer_of(name, False, dropout=0.3), states([400, 390], torch.float64), BatchLayout()

    def run_once() -> Tensor:
        torch.manual_seed(7)
        return layers.run_in_parts(layer, x, layout, layer.reach(layout) or 0)

    recomputed = outputs_and_gradients(layer, [x], run_once)
    monkeypatch.setattr(layers, "torch_checkpoint", lambda f, *args, use_reentrant, **kwargs: f(*args, **kwargs))
    kept = outputs_and_gradients(layer, [x], run_once)
    assert torch.equal(recomputed[0], kept[0])
    assert not torch.equal(kept[0], layer.eval()(x, layout))
    torch.testing.assert_close(recomputed[1], kept[1], rtol=1e-12, atol=1e-14)


def test_a_pattern_changes_the_output_and_no_name() -> None:
    models = [model_of(name) for name in ("full", "segments", "window")]
    assert len({tuple(model.state_dict()) for model in models}) == 1
    for model in models:
        torch.manual_seed(2)
        for parameter in model.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.3)  # at 0.02 all patterns would look alike
    out = [run(model, documents([31])) for model in models]
    assert not torch.allclose(out[0], out[1], atol=1e-4)
    assert not torch.allclose(out[0], out[2], atol=1e-4)


def test_layers_may_differ() -> None:
    layers = model_of("segments", " --encoder-attention-layers 1").encoder.layers
    assert [type(layer.self_attn).__name__ for layer in layers] == ["FullAttention", "SegmentAttention"]
    assert parse_layers("0,6-8", 12) == {0, 6, 7, 8}
    assert parse_layers(None, 2) == {0, 1}


@pytest.mark.parametrize("text", ["8-6", "0,8-6"])
def test_a_range_of_layers_does_not_end_before_it_begins(text: str) -> None:
    with pytest.raises(ValueError, match="8-6 ends before it begins; write 6-8"):
        parse_layers(text, 12)


@pytest.mark.parametrize("parts", PARTS)
def test_weights_of_full_attention_are_those_of_its_output(parts: str) -> None:
    """They are what `output_attentions` and `hat look` show."""
    attention, x, mask = attention_of("full", parts=parts), states([9, 5]), padding([9, 5])
    layout = layout_for("full", mask)
    values = attention.every_head(attention.heads(attention.v_proj(x)))
    expected = attention.merge(attention.weights(x, layout) @ values)
    assert_close(expected[~mask], attention(x, layout)[~mask])
