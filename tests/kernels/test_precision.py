"""Packed maps are the maps that they were made from, up to the rounding of their precision."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from commands import REPOSITORY, run_command
from helpers import assert_close
from torch import Tensor, nn

from hat_fairseq.kernels import (
    ACTIVATIONS,
    Linear,
    check_precision,
    choose_precision,
    naive,
    set_precision,
    torch_private,
)
from hat_fairseq.kernels.precision import PackedLinear, pack_linears, quantise
from hat_fairseq.modules.attention import AttentionSizes, CrossAttention
from hat_fairseq.modules.cache import KeyCache

needs_onednn = pytest.mark.skipif(not torch_private.ONEDNN, reason="a model is packed where torch has oneDNN")
needs_int8 = pytest.mark.skipif(not torch_private.multiplies_int8(), reason="int8 needs oneDNN and a CPU with VNNI")
needs_avx_vnni = pytest.mark.skipif(
    "avx_vnni" not in Path("/proc/cpuinfo").read_text().split(), reason="this CPU has no AVX-VNNI"
)
needs_bf16 = pytest.mark.skipif(not torch_private.BF16, reason="this CPU cannot multiply bf16")
PRECISIONS = pytest.mark.parametrize(
    "precision", ["fp32", pytest.param("bf16", marks=needs_bf16), pytest.param("int8", marks=needs_int8)]
)
ERRORS = {"fp32": 1e-5, "bf16": 0.01, "int8": 0.015}


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


@PRECISIONS
def test_a_packed_map_is_the_map(precision: str) -> None:
    """With an activation too; and a row does not depend on the other rows, in int8 to the last bit."""
    for bias in (True, False):
        module = make(bias=bias)
        packed = PackedLinear(module, precision)
        for shape in [(257,), (0, 257), (33, 257), (2, 3, 257)]:
            x = torch.randn(shape)
            expected = module(x)
            assert error(packed(x), expected) < ERRORS[precision]
            for name, function in ACTIVATIONS.items():
                assert error(packed(x, name), function(expected)) < 1.5 * ERRORS[precision]
    x[1] *= 100
    alone = torch.stack([packed(row, "gelu") for row in x.flatten(0, 1)]).view(2, 3, 300)
    assert error(packed(x, "gelu"), alone) <= (0 if precision == "int8" else ERRORS[precision])


@needs_bf16
def test_a_map_in_bf16_stays_in_bf16() -> None:
    module, x = make(dtype=torch.bfloat16), torch.randn(5, 257).bfloat16()
    packed = PackedLinear(module)
    assert packed.precision == "bf16"
    assert packed(x).dtype is torch.bfloat16
    assert_close(packed(x), module(x), torch.bfloat16)


@needs_int8
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_int8_is_naive_int8(activation: str | None) -> None:
    """Inputs rounded to 1/254 of each row's range (0 included), weights to 1/127 of an output's largest."""
    module, x = make(), torch.randn(33, 257) + torch.randn(33, 1)
    x[1] *= 1000
    module.weight[2] *= 1e-6
    steps = (x.amax(-1, keepdim=True).clamp(min=0) - x.amin(-1, keepdim=True).clamp(max=0)) / 254
    weight_steps = module.weight.abs().amax(1, keepdim=True) / 127
    rounded = (x / steps).round() * steps, (module.weight / weight_steps).round() * weight_steps
    expected, out = naive.linear(*rounded, module.bias, activation), PackedLinear(module, "int8")(x, activation)
    assert max(error(out[:, i], expected[:, i]) for i in range(300)) < 1e-3
    assert all(error(*rows) < 1e-3 for rows in zip(out, expected, strict=True))


@needs_int8
@pytest.mark.parametrize("inputs", [1, 2, 64, 3072])
@pytest.mark.parametrize("rows", [1, 16, 33, 700])
def test_products_of_integers_are_exact(rows: int, inputs: int) -> None:
    """Of large ones too, whose sums are beyond 2^24."""
    torch.manual_seed(rows)
    x, scales = torch.randint(0, 256, (rows, inputs), dtype=torch.uint8), torch.rand(301)
    weight = torch.randint(-127, 128, (301, inputs), dtype=torch.int8)
    weight[0], weight[1], x[0] = 127, -127, 255
    expected = (x.double() @ weight.double().t() * scales.double()).float()
    assert error(torch_private.onednn_int8(weight, scales)(x), expected) < 1e-6


ASK = """
import torch
from hat_fairseq.kernels import Linear, check_precision, pack_linears, torch_private
calls = [lambda name=name: check_precision(name, "cpu") for name in ("int8", "bf16")]
calls.append(lambda: pack_linears(torch.nn.Sequential(Linear(64, 64)), "int8"))
for call in calls:
    try:
        print(call())
    except ValueError as error:
        print(error)
"""
NO_VNNI = "precision int8 needs a CPU with VNNI instructions; this one has none: use fp32"
NO_BF16 = "precision bf16: this CPU cannot multiply bf16"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instructions", "int8", "bf16"),
    [
        ("AVX2", NO_VNNI, f"{NO_BF16}; use fp32"),
        pytest.param("AVX512_CORE", f"{NO_VNNI} or bf16", "None", marks=needs_bf16),
        pytest.param("AVX2_VNNI", "None", f"{NO_BF16}; use fp32 or int8", marks=needs_avx_vnni),
    ],
)
@pytest.mark.skipif(not torch_private.INT8, reason="this torch has no oneDNN")
def test_a_precision_is_refused_without_its_instructions(instructions: str, int8: str, bf16: str) -> None:
    """In a process of its own, because oneDNN reads the variable once. Also where nobody has asked before packing."""
    command = "env", f"ONEDNN_MAX_CPU_ISA={instructions}", sys.executable, "-c", ASK
    packed = int8 if int8.startswith("precision") else "1"
    assert run_command(*command).stdout.splitlines() == [int8, bf16, packed]


def test_quantised_rows_are_the_nearest_ones() -> None:
    of_all_sizes = torch.randn(4, 2, 50) * torch.logspace(-20, 20, 4)[:, None, None]
    tiny, empty = torch.tensor([1e-30, 2e-30]), torch.empty(0, 5)
    for x in (torch.rand(2, 50) + 3, -torch.rand(50), of_all_sizes, torch.zeros(2, 5), tiny, empty):
        integers, scales, offsets = quantise(x)
        assert integers.dtype is torch.uint8
        assert scales.shape == offsets.shape == (*x.shape[:-1], 1)
        assert ((integers * scales + offsets - x).abs() <= 0.51 * scales).all()
        zeros = quantise(torch.cat([x, torch.zeros_like(scales)], -1))
        assert torch.equal(zeros[0][..., -1:] * zeros[1] + zeros[2], torch.zeros_like(scales))


@needs_onednn
@PRECISIONS
def test_packing_a_model_replaces_its_large_maps(precision: str) -> None:
    model = nn.ModuleDict({"table": nn.Embedding(300, 257), "own": nn.Linear(257, 257), "small": Linear(257, 8)})
    model["out"] = make(bias=False)
    model["out"].weight = model["table"].weight
    x, table = torch.randn(7, 257), model["table"].weight.clone()
    before = [model[name](x) for name in ("out", "small")]
    small_too = precision != "fp32"
    assert pack_linears(model, precision) == 1 + small_too  # never torch's own
    assert isinstance(model["out"], PackedLinear)
    assert isinstance(model["small"], PackedLinear if small_too else Linear)
    for name, expected in zip(("out", "small"), before, strict=True):
        assert error(model[name](x), expected) < 2 * ERRORS[precision]
    assert torch.equal(model["table"].weight, table)
    assert pack_linears(model, precision) == 0


@needs_onednn
@PRECISIONS
def test_packed_attention_keeps_its_keys_in_the_type_of_its_precision(precision: str) -> None:
    module, cache = CrossAttention(AttentionSizes(256, 4)).eval(), KeyCache()
    assert pack_linears(module, precision) == 4
    module(torch.randn(6, 5, 256), torch.randn(2, 40, 256), cache=cache)
    in_bf16 = precision != "fp32" and torch_private.BF16
    assert cache.keys.dtype is (torch.bfloat16 if in_bf16 else torch.float32)


@pytest.mark.parametrize(("name", "dtype"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_elsewhere_than_on_a_cpu_the_whole_model_changes(name: str, dtype: torch.dtype) -> None:
    model = nn.Sequential(Linear(8, 8), nn.LayerNorm(8)).to("meta")
    set_precision(model, name)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_a_stated_precision_is_not_chosen_anew() -> None:
    assert choose_precision("fp32", "cpu") == "fp32"
    with pytest.raises(ValueError, match="fp16 is GPU-only"):
        choose_precision("fp16", "cpu")


@pytest.mark.parametrize(
    ("amx", "avx512", "precision"),
    [(True, False, "bf16"), (False, True, "bf16"), (False, False, "fp32"), (None, None, "fp32")],
)
def test_the_precision_is_chosen_by_the_instructions(
    amx: bool | None, avx512: bool | None, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, known in (("_amx", amx), ("_avx512_bf16", avx512)):
        monkeypatch.setattr(torch_private, name, None if known is None else lambda known=known: known)
    assert choose_precision("auto", "cpu") == (precision if torch_private.BF16 else "fp32")


def test_int8_needs_a_product_of_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_private, "INT8", False)
    check_precision("fp32", "cpu")
    with pytest.raises(ValueError, match="precision int8 needs a torch with oneDNN"):
        check_precision("int8", "cpu")


@pytest.mark.parametrize(
    ("name", "device", "message"),
    [
        ("int4", "cpu", "unknown precision 'int4'; choose one of fp32, fp16, bf16, int8"),
        ("fp16", "cpu", "precision fp16 is GPU-only; on this CPU use fp32"),
        ("int8", "cuda", r"precision int8 is CPU-only \(device: cuda\); on a GPU use fp16 or bf16"),
    ],
)
def test_unknown_and_unsupported_precisions(name: str, device: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_precision(name, device)


SCRIPT = """
import resource, torch
from hat_fairseq.kernels.precision import PackedLinear
layer = PackedLinear(torch.nn.Linear(256, 1024))
layer(torch.zeros(600, 256))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for length in range(100, 600):
    layer(torch.zeros(length, 256))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)  # KB
"""


@pytest.mark.slow
@pytest.mark.fault("Generation and prediction", "documents of many lengths", "few of oneDNN's kernels are kept")
def test_few_kernels_are_kept() -> None:
    grown = []
    for limit in ({}, {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1024", "LRU_CACHE_CAPACITY": "1024"}):
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", **limit}
        words = [sys.executable, "-c", SCRIPT]
        grown.append(int(subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout))
    if grown[1] < 20_000:
        pytest.skip("oneDNN is not used on this processor")
    assert grown[0] < grown[1] / 2


def test_public_operators_take_the_place_of_all_private_ones() -> None:
    """`make test-processors` runs this folder with the variable."""
    private = torch_private.ONEDNN, torch_private.INT8, torch_private.FLASH
    assert private == ((False,) * 3 if os.environ.get("HAT_PUBLIC_OPERATORS") == "1" else (True,) * 3)
