"""Packed maps are the maps that they were made from; those of lower precision are so up to their rounding."""

from __future__ import annotations

import sys

import pytest
import torch
from commands import run_command
from helpers import assert_close
from torch import Tensor, nn

from hat_fairseq.kernels import ACTIVATIONS, Linear, naive
from hat_fairseq.kernels.precision import PackedLinear, pack_linears, quantise
from hat_fairseq.kernels.torch_private import BF16, INT8, onednn_linear
from hat_fairseq.modules.attention import MultiheadAttention
from hat_fairseq.modules.cache import DecoderCache

needs_onednn = pytest.mark.skipif(not INT8, reason="a model is packed where torch has oneDNN")
needs_bf16 = pytest.mark.skipif(not BF16, reason="this CPU cannot multiply bf16")
LOW = [pytest.param("bf16", marks=needs_bf16), "int8"]
ERRORS = {"fp32": 1e-5, "bf16": 0.01, "int8": 0.015}
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
    for name, function in ACTIVATIONS.items():
        assert error(packed(x, name), function(expected)) < 1.5 * ERRORS[precision]
        assert error(onednn_linear(x, module.weight, module.bias, name), function(expected)) < ERRORS["fp32"]


@needs_bf16
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


def int8_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """`naive.linear`, x rounded to 1/254 of each row's range (0 included), weights to 1/127 of an output's largest."""
    steps = (x.amax(-1, keepdim=True).clamp(min=0) - x.amin(-1, keepdim=True).clamp(max=0)).clamp(min=1e-35) / 254
    weight_steps = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return naive.linear((x / steps).round() * steps, (weight / weight_steps).round() * weight_steps, bias, activation)


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_int8_is_naive_int8(activation: str | None) -> None:
    module, x = make(), torch.randn(33, 257) + torch.randn(33, 1)
    expected = int8_linear(x, module.weight, module.bias, activation)
    assert error(PackedLinear(module, "int8")(x, activation), expected) < 1e-3


LARGE_INPUTS = """
import torch
from hat_fairseq.kernels.precision import PackedLinear
torch.manual_seed(0)
module, x = torch.nn.Linear(768, 300), torch.rand(33, 768) + 3
with torch.no_grad():
    expected = module(x)
    print(float((PackedLinear(module, "int8")(x) - expected).norm() / expected.norm()))
"""


@pytest.mark.parametrize("instructions", ["AVX2", "AVX512_CORE"])
def test_int8_needs_no_vnni_instructions(instructions: str) -> None:
    """In a process of its own, because oneDNN reads the variable once."""
    command = "env", f"ONEDNN_MAX_CPU_ISA={instructions}", sys.executable, "-c", LARGE_INPUTS
    assert float(run_command(*command).stdout) < ERRORS["int8"]


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
@pytest.mark.parametrize("precision", ["fp32", *LOW])
def test_a_row_does_not_depend_on_the_other_rows(precision: str, activation: str | None) -> None:
    """int8: to the last bit."""
    packed, x = PackedLinear(make(257, 300), precision), torch.randn(5, 3, 257)
    x[2] *= 100
    together = packed(x, activation)
    for i in range(5):
        for j in range(3):
            alone = packed(x[i, j], activation)
            if precision == "int8":
                assert torch.equal(together[i, j], alone)
            else:
                assert error(together[i, j], alone) < ERRORS[precision]


def test_a_large_row_does_not_raise_the_error_of_a_small_one() -> None:
    module, x = make(), torch.randn(2, 257)
    x[1] *= 1000
    out, expected = PackedLinear(module, "int8")(x), module(x)
    assert error(out[0], expected[0]) < ERRORS["int8"] and error(out[1], expected[1]) < ERRORS["int8"]


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(3, 50),
        torch.rand(2, 50) + 3,
        -torch.rand(50),
        torch.randn(4, 2, 50) * torch.logspace(-20, 20, 4)[:, None, None],
        torch.zeros(2, 5),
        torch.tensor([1e-30, 2e-30]),
        torch.empty(0, 5),
    ],
)
def test_quantised_rows_are_the_nearest_ones(x: Tensor) -> None:
    integers, scales, offsets = quantise(x)
    assert integers.dtype is torch.uint8 and scales.shape == offsets.shape == (*x.shape[:-1], 1)
    assert ((integers * scales + offsets - x).abs() <= 0.51 * scales).all()
    zeros = quantise(torch.cat([x, torch.zeros_like(scales)], -1))
    assert torch.equal(zeros[0][..., -1:] * zeros[1] + zeros[2], torch.zeros_like(scales))


@needs_onednn
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


@needs_onednn
@pytest.mark.parametrize("precision", ["fp32", *LOW])
def test_packed_attention_keeps_its_keys_in_the_type_of_its_precision(precision: str) -> None:
    torch.manual_seed(0)
    module = MultiheadAttention(256, 4).eval()
    x, memory = torch.randn(6, 5, 256), torch.randn(2, 40, 256)
    expected = module(x, causal=True), module(x, memory)
    assert pack_linears(module, precision) == 4
    layer, steps = DecoderCache(1).layers[0], []
    for i in range(5):
        steps.append(module(x[:, i : i + 1], causal=True, cache=layer.self_attn))
    across = module(x, memory, cache=layer.encoder_attn)
    assert layer.encoder_attn.keys.dtype is (torch.float32 if precision == "fp32" else torch.bfloat16)
    assert error(torch.cat(steps, 1), expected[0]) < 2 * ERRORS[precision]
    assert error(across, expected[1]) < 2 * ERRORS[precision]
