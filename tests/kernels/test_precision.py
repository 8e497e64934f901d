"""Precisions are set where the device supports them, and refused elsewhere."""

from __future__ import annotations

import pytest
import torch

from hat_fairseq.kernels import Linear, check_precision, chosen_precision, precision, set_precision, torch_private
from hat_fairseq.kernels.precision import PackedLinear


@pytest.mark.skipif(not torch_private.INT8, reason="this torch has no oneDNN")
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_on_a_cpu_linear_layers_change(precision: str) -> None:
    if precision == "bf16" and not torch_private.BF16:
        pytest.skip("this CPU has no bf16")
    model = torch.nn.Sequential(Linear(8, 8), torch.nn.LayerNorm(8)).eval()
    set_precision(model, precision)
    assert isinstance(model[0], PackedLinear) and model[0].precision == precision
    assert model[1].weight.dtype is torch.float32


@pytest.mark.parametrize(("precision", "dtype"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_elsewhere_the_whole_model_changes(precision: str, dtype: torch.dtype) -> None:
    model = torch.nn.Sequential(Linear(8, 8), torch.nn.LayerNorm(8)).to("meta")
    set_precision(model, precision)
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


def test_unknown_and_unsupported_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="unknown precision 'int4'; choose one of fp32, fp16, bf16, int8"):
        check_precision("int4", "cpu")
    with pytest.raises(ValueError, match="precision fp16 is GPU-only; on a CPU use bf16 or int8"):
        check_precision("fp16", "cpu")
    with pytest.raises(ValueError, match=r"precision int8 is CPU-only \(device: cuda\); on a GPU use fp16 or bf16"):
        check_precision("int8", "cuda")
    monkeypatch.setattr(torch_private, "INT8", False)
    check_precision("fp32", "cpu")
    with pytest.raises(ValueError, match="precision int8 needs a torch with oneDNN"):
        check_precision("int8", "cpu")


@pytest.mark.skipif(not torch_private.INT8, reason="this torch has no oneDNN")
def test_wrong_products_of_integers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "int8_product", lambda x, *others: 0.9 * torch_private.int8_product(x, *others))
    precision.exact_product.cache_clear()
    with pytest.raises(ValueError, match="precision int8: torch's products of 8-bit integers are wrong on this"):
        set_precision(torch.nn.Sequential(Linear(8, 8)), "int8")


def test_flags_choose_one_precision() -> None:
    assert chosen_precision(False, False) == "fp32"
    assert chosen_precision(True, False) == "fp16"
    assert chosen_precision(False, True, "bf16") == "bf16"
    assert chosen_precision(False, False, "int8") == "int8"
    with pytest.raises(ValueError, match="choose one precision, not bf16 and int8"):
        chosen_precision(False, True, "int8")
