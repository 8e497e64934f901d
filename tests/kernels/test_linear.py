"""The linear map of either library is the same map."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, assert_same_run
from torch import nn

from hat_fairseq.kernels import ACTIVATIONS, Linear, naive, torch_private
from hat_fairseq.kernels.linear import MIN_WEIGHT, fastest_product
from hat_fairseq.kernels.torch_private import onednn_linear

pytestmark = pytest.mark.usefixtures("either_library")
DTYPES = [torch.float32, torch.bfloat16]


def make(inputs: int = 257, outputs: int = 300, bias: bool = True, dtype: torch.dtype = torch.float32) -> Linear:
    torch.manual_seed(0)
    return Linear(inputs, outputs, bias).to(dtype)


def test_large_fp32_weights_go_to_onednn_and_nothing_else_does() -> None:
    x, large, small = torch.randn(3, 256), torch.randn(256, 256), torch.randn(255, 256)
    expected = onednn_linear if torch_private.PREFER_ONEDNN else F.linear
    assert large.numel() == MIN_WEIGHT and fastest_product(x, large) is expected
    assert fastest_product(x, small) is F.linear
    assert fastest_product(x.bfloat16(), large.bfloat16()) is F.linear
    assert fastest_product(x.to("meta"), large.to("meta")) is F.linear
    with torch.autocast("cpu", torch.bfloat16):
        assert fastest_product(x, large) is F.linear
        assert make()(torch.randn(2, 257)).dtype is torch.bfloat16


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_activation_is_applied(activation: str) -> None:
    module, x = make(), torch.randn(3, 257)
    assert_close(module(x, activation), naive.linear(x, module.weight, module.bias, activation))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 257), (7, 257), (2, 5, 257), (33, 257), (2, 3, 4, 257)])
def test_outputs_and_gradients_are_those_of_torch(shape: tuple[int, ...], bias: bool, dtype: torch.dtype) -> None:
    module, x = make(bias=bias, dtype=dtype), torch.randn(shape).to(dtype).requires_grad_()
    assert_same_run(module, [x], lambda: module(x), lambda: F.linear(x, module.weight, module.bias), dtype)


def test_strided_inputs_and_expanded_gradients() -> None:
    module, x = make(), torch.randn(257, 6).t().requires_grad_()
    assert_same_run(module, [x], lambda: module(x), lambda: F.linear(x, module.weight, module.bias))
    gradients = []
    for function in (module, lambda y: F.linear(y, module.weight, module.bias)):
        x.grad = None
        function(x).sum().backward()  # the gradient that arrives has stride 0
        gradients.append(x.grad)
    assert_close(*gradients)


def test_only_what_is_wanted_gets_a_gradient() -> None:
    module, x = make(), torch.randn(4, 257)
    module(x).sum().backward()
    assert x.grad is None and module.weight.grad is not None
    module.requires_grad_(False)
    assert not module(x).requires_grad
    x.requires_grad_()
    module.weight.grad = None
    module(x).sum().backward()
    assert x.grad is not None and module.weight.grad is None


def test_no_rows() -> None:
    module, x = make(), torch.randn(0, 257, requires_grad=True)
    out = module(x)
    out.sum().backward()
    assert out.shape == (0, 300) and module.weight.grad.eq(0).all()


def test_parameters_have_the_names_and_the_first_values_of_torch() -> None:
    torch.manual_seed(0)
    expected = nn.Linear(257, 300)
    module = make()
    assert module.state_dict().keys() == expected.state_dict().keys()
    assert all(torch.equal(module.state_dict()[name], value) for name, value in expected.state_dict().items())
