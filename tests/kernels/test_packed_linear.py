"""Packed maps are the maps that they were made from; those of lower precision are so up to their rounding."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close
from torch import Tensor, nn

from hat_fairseq.kernels import linear
from hat_fairseq.kernels.linear import Linear, onednn_linear
from hat_fairseq.kernels.packed_linear import PackedLinear, pack_linears, quantise
from hat_fairseq.modules.attention import MultiheadAttention
from hat_fairseq.modules.cache import DecoderCache

pytestmark = pytest.mark.skipif(not linear.AVAILABLE, reason="this torch has no oneDNN")
BF16 = torch.ops.mkldnn._is_mkldnn_bf16_supported() if linear.AVAILABLE else False
LOW = [pytest.param("bf16", marks=pytest.mark.skipif(not BF16, reason="this CPU cannot multiply bf16")), "int8"]
ERRORS = {"fp32": 1e-5, "bf16": 0.01, "int8": 0.03}
SHAPES = [(1, 257), (4, 257), (33, 257), (700, 257), (2, 3, 257), (257,), (0, 257)]


def make(inputs: int = 257, outputs: int = 300, bias: bool = True, dtype: torch.dtype = torch.float32) -> Linear:
    torch.manual_seed(0)
    return Linear(inputs, outputs, bias).to(dtype)


def error(actual: Tensor, expected: Tensor) -> float:
    assert actual.shape == expected.shape
    return float((actual.float() - expected.float()).norm() / expected.float().norm()) if expected.numel() else 0.0


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.mark.parametrize("precision", ["fp32", *LOW])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_packed_map_is_the_map(shape: tuple[int, ...], bias: bool, precision: str) -> None:
    module, x = make(bias=bias), torch.randn(shape)
    packed, expected = PackedLinear(module, precision), module(x)
    assert error(packed(x), expected) < ERRORS[precision]
    for name, function in (("gelu", F.gelu), ("relu", F.relu)):
        assert error(packed(x, name), function(expected)) < 1.5 * ERRORS[precision]
        assert error(onednn_linear(x, module.weight, module.bias, name), function(expected)) < ERRORS["fp32"]


def test_a_map_in_bf16_stays_in_bf16() -> None:
    module, x = make(dtype=torch.bfloat16), torch.randn(5, 257).bfloat16()
    packed = PackedLinear(module)
    assert packed.precision == "bf16" and packed(x).dtype is torch.bfloat16
    assert_close(packed(x), module(x), torch.bfloat16)


def test_weights_of_very_different_outputs_each_keep_their_precision() -> None:
    module, x = make(bias=False), torch.randn(9, 257)
    factors = torch.logspace(-6, 3, 300)
    module.weight.mul_(factors[:, None])
    out, expected = PackedLinear(module, "int8")(x), module(x)
    assert max(error(out[:, i], expected[:, i]) for i in range(300)) < 0.1


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(50),
        torch.rand(50) + 3,
        -torch.rand(50),
        torch.zeros(5),
        torch.tensor([1e-30, 2e-30]),
        torch.tensor([]),
    ],
)
def test_quantised_numbers_are_the_nearest_ones(x: Tensor) -> None:
    integers, scale, zero = quantise(x)
    assert integers.dtype is torch.uint8 and 0 <= zero <= 255
    back = (integers.float() - zero) * scale
    assert not x.numel() or (back - x).abs().max() <= 0.51 * scale
    assert torch.equal(quantise(torch.cat([x, torch.zeros(1)]))[0][-1:].int(), torch.tensor([zero]).int())


@pytest.mark.parametrize("precision", ["fp32", *LOW])
def test_packing_a_model_replaces_its_large_maps(precision: str) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(300, 257)
            self.layers = nn.ModuleList([make(257, 257), nn.Linear(257, 257), Linear(257, 8)])
            self.out = make(257, 300, bias=False)
            self.out.weight = self.table.weight

        def forward(self, tokens: Tensor) -> Tensor:
            x = self.layers[1](self.layers[0](self.table(tokens)).float())
            return torch.cat([self.out(x), self.layers[2](x)], -1)

    model, tokens = Tied().eval(), torch.randint(300, (2, 7))
    before, table = model(tokens), model.table.weight.clone()
    small_too = precision != "fp32"
    assert pack_linears(model, precision) == 2 + small_too  # never torch's own
    assert isinstance(model.out, PackedLinear) and isinstance(model.layers[2], PackedLinear if small_too else Linear)
    assert error(model(tokens), before) < 3 * ERRORS[precision]
    assert torch.equal(model.table.weight, table)
    assert pack_linears(model, precision) == 0


@pytest.mark.parametrize("precision", ["fp32", *LOW])
def test_packed_attention_keeps_its_keys_in_the_type_of_its_precision(precision: str) -> None:
    torch.manual_seed(0)
    module = MultiheadAttention(256, 4).eval()
    x, memory = torch.randn(6, 5, 256), torch.randn(2, 40, 256)
    expected = module(x, causal=True)[0], module(x, memory)[0]
    assert pack_linears(module, precision) == 4
    cache = DecoderCache(6, 2, 1, x.device)
    layer, steps = cache.layers[0], []
    for i in range(5):
        cache.append_slots(1)
        steps.append(module(x[:, i : i + 1], causal=True, cache=layer.self_attn)[0])
    across = module(x, memory, cache=layer.encoder_attn)[0]
    assert layer.encoder_attn.keys.dtype is (torch.float32 if precision == "fp32" else torch.bfloat16)
    assert error(torch.cat(steps, 1), expected[0]) < 2 * ERRORS[precision]
    assert error(across, expected[1]) < 2 * ERRORS[precision]
