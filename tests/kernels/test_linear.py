"""Linear maps and the feed-forward network: of either library, those of torch; the backward pass keeps less."""

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, assert_same_run
from torch import Tensor, nn

from hat_fairseq.kernels import ACTIVATIONS, Linear, choice, feed_forward, naive, pack_linears
from hat_fairseq.kernels.linear import MIN_WEIGHT, PRODUCTS, fastest_product
from hat_fairseq.modules.layers import LayerSizes, TransformerLayer

pytestmark = pytest.mark.usefixtures("either_library")


def make(inputs: int = 257, outputs: int = 300, bias: bool = True) -> Linear:
    torch.manual_seed(0)
    return Linear(inputs, outputs, bias)


def network_of(inputs: int, outputs: int) -> nn.ModuleList:
    return nn.ModuleList([make(inputs, outputs), make(outputs, inputs)])


def naive_network(network: nn.ModuleList, x: Tensor, activation: str) -> Tensor:
    hidden = naive.linear(x, network[0].weight, network[0].bias, activation)
    return naive.linear(hidden, network[1].weight, network[1].bias)


def test_large_fp32_weights_go_to_the_chosen_library_and_nothing_else_does() -> None:
    x, large, small = torch.randn(3, 256), torch.randn(256, 256), torch.randn(255, 256)
    expected = PRODUCTS[choice.chosen()["few_rows"]]
    assert large.numel() == MIN_WEIGHT and fastest_product(x, large) is expected
    assert fastest_product(x, small) is F.linear
    assert fastest_product(x.bfloat16(), large.bfloat16()) is F.linear
    assert fastest_product(x.to("meta"), large.to("meta")) is F.linear
    with torch.autocast("cpu", torch.bfloat16):
        assert fastest_product(x, large) is F.linear
        assert make()(torch.randn(2, 257)).dtype is torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_map_is_that_of_torch(dtype: torch.dtype) -> None:
    """Outputs and gradients, of strided rows and of no row too; the same parameters, initial values included."""
    torch.manual_seed(0)
    expected, module = nn.Linear(257, 300).state_dict(), make()
    assert expected.keys() == module.state_dict().keys()
    assert all(torch.equal(module.state_dict()[name], value) for name, value in expected.items())
    for module in (make().to(dtype), make(bias=False).to(dtype)):
        for x in (torch.randn(7, 257), torch.randn(2, 3, 4, 257), torch.randn(257, 6).t()):
            check_map(module, x.to(dtype).requires_grad_(), dtype)
    x = torch.randn(4, 257, dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(module(x).sum(), x)  # the gradient that arrives has stride 0
    assert_close(gradient, module.weight.sum(0).expand_as(x), dtype)
    module.zero_grad()
    module(x[:0]).sum().backward()
    assert module.weight.grad.eq(0).all()


def check_map(module: Linear, x: Tensor, dtype: torch.dtype) -> None:
    assert_same_run(module, [x], lambda: module(x), lambda: F.linear(x, module.weight, module.bias), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("sizes", "shape"), [((7, 5), (3, 11)), ((257, 300), (1,)), ((257, 300), (2, 5))])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_outputs_and_gradients_are_those_of_the_naive_network(
    activation: str, sizes: tuple[int, int], shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    network, x = network_of(*sizes).to(dtype), torch.randn(*shape, sizes[0]).to(dtype).requires_grad_()
    network_out = lambda: feed_forward(x, *network, activation)  # noqa: E731
    assert_same_run(network, [x], network_out, lambda: naive_network(network, x, activation), dtype)
    expected = naive_network(network, x, activation)
    with torch.no_grad():
        assert_close(network_out(), expected, dtype)
        pack_linears(network)
    assert_close(network_out(), expected, dtype)


def test_only_what_is_wanted_gets_a_gradient() -> None:
    network, x = network_of(257, 300), torch.randn(3, 257)
    network[1].requires_grad_(False)
    feed_forward(x, *network, "gelu").sum().backward()
    assert x.grad is None and network[0].weight.grad is not None and network[1].weight.grad is None
    network.requires_grad_(False)
    assert not feed_forward(x, *network, "gelu").requires_grad
    network[0].weight.grad = None
    feed_forward(x.requires_grad_(), *network, "gelu").sum().backward()
    assert x.grad is not None and network[0].weight.grad is None


def kept_bytes(function) -> int:
    saved: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        saved[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        out = function()  # alive while the tensors are counted
    assert out.requires_grad
    return sum(saved.values())


def test_the_output_of_the_activation_is_not_kept() -> None:
    torch.manual_seed(0)
    layer = TransformerLayer(LayerSizes(embed_dim=16, ffn_embed_dim=64, num_heads=2, activation="gelu"))
    x = torch.randn(2, 50, 16, requires_grad=True)
    plain = kept_bytes(lambda: layer.fc2(ACTIVATIONS["gelu"](layer.fc1(x))))
    assert plain - kept_bytes(lambda: layer.feed_forward(x)) == 2 * 50 * 64 * 4
