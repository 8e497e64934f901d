"""Recomputing the activation in the backward pass changes no number and keeps less."""

from __future__ import annotations

import pytest
import torch
from helpers import assert_close, assert_same_run
from torch import Tensor, nn

from hat_fairseq.kernels import ACTIVATIONS, Linear, feed_forward, naive, pack_linears
from hat_fairseq.modules.layers import LayerSizes, TransformerLayer

pytestmark = pytest.mark.usefixtures("either_library")


def make(inputs: int, outputs: int) -> nn.ModuleList:
    torch.manual_seed(0)
    return nn.ModuleList([Linear(inputs, outputs), Linear(outputs, inputs)])


def naive_network(network: nn.ModuleList, x: Tensor, activation: str) -> Tensor:
    hidden = naive.linear(x, network[0].weight, network[0].bias, activation)
    return naive.linear(hidden, network[1].weight, network[1].bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(7, 5), (257, 300)], ids=str)
@pytest.mark.parametrize("shape", [(1,), (7,), (2, 5), (3, 11)], ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_outputs_and_gradients_are_those_of_the_naive_network(
    activation: str, shape: tuple[int, ...], sizes: tuple[int, int], dtype: torch.dtype
) -> None:
    network = make(*sizes).to(dtype)
    x = torch.randn(*shape, sizes[0]).to(dtype).requires_grad_()
    assert_same_run(
        network,
        [x],
        lambda: feed_forward(x, *network, activation),
        lambda: naive_network(network, x, activation),
        dtype,
    )


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


def test_only_what_is_wanted_gets_a_gradient() -> None:
    network, x = make(5, 7), torch.randn(3, 5, requires_grad=True)
    network[1].requires_grad_(False)
    feed_forward(x, *network, "gelu").sum().backward()
    assert x.grad is not None and network[0].weight.grad is not None and network[1].weight.grad is None
    network.requires_grad_(False)
    assert not feed_forward(x.detach(), *network, "gelu").requires_grad
    with torch.autocast("cpu", torch.bfloat16):
        assert feed_forward(x, *network, "gelu").dtype is torch.bfloat16


def test_dropout_of_the_activation_is_still_applied() -> None:
    torch.manual_seed(0)
    layer = TransformerLayer(LayerSizes(embed_dim=16, ffn_embed_dim=64, num_heads=2, activation_dropout=0.5))
    x = torch.randn(2, 3, 16)
    assert not torch.equal(layer.feed_forward(x), layer.feed_forward(x))
    layer.eval()
    assert torch.equal(layer.feed_forward(x), layer.feed_forward(x))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_with_gradients_without_and_packed_it_is_the_same_network(activation: str) -> None:
    network, x = make(257, 300), torch.randn(3, 257)
    expected = naive_network(network, x, activation)
    assert_close(feed_forward(x, *network, activation), expected)
    with torch.no_grad():
        assert_close(feed_forward(x, *network, activation), expected)
        pack_linears(network)
        assert_close(feed_forward(x, *network, activation), expected)
    assert_close(feed_forward(x, *network, activation), expected)
