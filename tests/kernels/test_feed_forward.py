"""The feed-forward network: its outputs and gradients are those of its definition; the backward pass keeps less."""

from typing import Any

import pytest
import torch
import torch.nn.utils.prune
from helpers import assert_close, assert_same_run
from torch import Tensor, nn

from hat_fairseq.kernels import ACTIVATIONS, GATED, Linear, feed_forward, naive, pack_linears, torch_private
from hat_fairseq.modules.layers import LayerSizes, TransformerLayer


def network_of(inputs: int, outputs: int, activation: str = "", bias: bool = True) -> nn.ModuleList:
    torch.manual_seed(0)
    twice = 2 if activation in GATED else 1
    return nn.ModuleList([Linear(inputs, twice * outputs, bias), Linear(outputs, inputs, bias)])


def naive_network(network: nn.ModuleList, x: Tensor, activation: str) -> Tensor:
    hidden = naive.linear(x, network[0].weight, network[0].bias, activation)
    return naive.linear(hidden, network[1].weight, network[1].bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("sizes", "shape"), [((7, 5), (3, 11)), ((257, 300), (1,)), ((257, 300), (2, 5))])
@pytest.mark.parametrize("activation", [*ACTIVATIONS, *GATED])
def test_outputs_and_gradients_are_those_of_the_naive_network(
    activation: str, sizes: tuple[int, int], shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    network, x = network_of(*sizes, activation).to(dtype), torch.randn(*shape, sizes[0]).to(dtype).requires_grad_()
    network_out = lambda: feed_forward(x, *network, activation)  # noqa: E731
    assert_same_run(network, [x], network_out, lambda: naive_network(network, x, activation), dtype)
    expected = naive_network(network, x, activation)
    with torch.no_grad():
        assert_close(network_out(), expected, dtype)
        pack_linears(network)
    assert_close(network_out(), expected, dtype)


@pytest.mark.parametrize(
    ("name", "function"), [("geglu", torch.nn.functional.gelu), ("swiglu", torch.nn.functional.silu)]
)
def test_the_first_half_is_activated_and_the_second_multiplies_it(name: str, function: Any) -> None:
    network, x = network_of(7, 5, name, bias=False), torch.randn(3, 7)
    hidden = x @ network[0].weight.T
    assert_close(feed_forward(x, *network, name), (function(hidden[:, :5]) * hidden[:, 5:]) @ network[1].weight.T)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_of_activations(training: bool) -> None:
    layer = TransformerLayer(LayerSizes(24, 40, 4, activation_dropout=0.5)).train(training)
    x = torch.randn(5, 24)
    outs = []
    for function in (layer.feed_forward, lambda x: layer.fc2(nn.Dropout(0.5).train(training)(layer.fc1(x).relu()))):
        torch.manual_seed(1)
        outs.append(function(x))
    assert_close(*outs)


def test_only_what_is_wanted_gets_a_gradient() -> None:
    network, x = network_of(257, 300), torch.randn(3, 257)
    network[1].requires_grad_(False)
    feed_forward(x, *network, "gelu").sum().backward()
    assert x.grad is None
    assert network[0].weight.grad is not None
    assert network[1].weight.grad is None
    network.requires_grad_(False)
    assert not feed_forward(x, *network, "gelu").requires_grad
    network[0].weight.grad = None
    feed_forward(x.requires_grad_(), *network, "gelu").sum().backward()
    assert x.grad is not None
    assert network[0].weight.grad is None


class Adapter(nn.Module):
    """A map with a second one beside it, which passes on its arguments and shows its weight, as those of peft do."""

    def __init__(self, base: nn.Module, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base, self.added = base, nn.Linear(inputs, outputs)

    @property
    def weight(self) -> Tensor:
        return self.base.weight

    def forward(self, x: Tensor, *arguments: object) -> Tensor:
        return self.base(x, *arguments) + self.added(x)


@pytest.mark.parametrize("places", [(0,), (1,), (0, 1)])
def test_an_adapter_is_neither_passed_by_nor_activated_in_half(places: tuple[int, ...]) -> None:
    """In training, without gradients, and around packed maps."""
    sizes = 257, 300
    network, x = network_of(*sizes), torch.randn(5, 257, requires_grad=True)
    for place in places:
        network[place] = Adapter(network[place], sizes[place], sizes[1 - place])

    def expected() -> Tensor:
        return network[1](naive.activated(network[0](x), "gelu"))

    assert_same_run(network, [x], lambda: feed_forward(x, *network, "gelu"), expected)
    out = expected().detach()
    with torch.no_grad():
        assert_close(feed_forward(x, *network, "gelu"), out)
        assert pack_linears(network) == 2 * torch_private.ONEDNN
        assert_close(feed_forward(x, *network, "gelu"), out)


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


@pytest.mark.parametrize("change", ["hook", "pruning", "weight norm", "forward"])
def test_a_changed_map_is_called(change: str) -> None:
    """With gradients as without; two steps of training."""
    layer = TransformerLayer(LayerSizes(24, 40, 4))
    fc2 = layer.fc2
    if change == "hook":
        fc2.register_forward_hook(lambda module, inputs, output: 3 * output)
    elif change == "pruning":
        torch.nn.utils.prune.l1_unstructured(fc2, "weight", 0.5)
    elif change == "weight norm":
        torch.nn.utils.parametrizations.weight_norm(fc2)
    else:
        fc2.forward = lambda x: x[..., :24] * 2
    x, optimizer = torch.randn(5, 24), torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        with torch.no_grad():
            expected = layer.feed_forward(x)
        out = layer.feed_forward(x)
        torch.testing.assert_close(out, expected)
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
