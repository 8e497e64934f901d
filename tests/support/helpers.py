"""Comparing outputs and gradients, and small pieces of data that many tests need."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock
from torch import Tensor, nn

from hat_fairseq.kernels.precision import PackedLinear


def assert_close(
    actual: Tensor, expected: Tensor, dtype: torch.dtype = torch.float32, bf16_error: float = 0.05, scale: float = 1e-2
) -> None:
    """fp32: every entry. bf16 has 8 bits and one rounding can switch a ReLU: the relative error of the whole tensor.

    A missing or additional key, or a swapped norm, gives errors near 1. `scale`: smallest norm that an error is
    relative to.
    """
    assert actual.shape == expected.shape
    if dtype is torch.float32:
        torch.testing.assert_close(actual.float(), expected.float(), atol=2e-5, rtol=1e-4)
        return
    error = (actual.float() - expected.float()).norm() / expected.float().norm().clamp(min=scale)
    assert error < bf16_error, f"relative error {error:.4f}"


@cache
def rows_are_alone(precision: str) -> bool:
    """Whether the bits of a row of a product do not depend on how many other rows there are, on this processor."""
    x, small = torch.randn(300, 64), nn.Linear(64, 8)  # too small to be packed
    products = small, nn.Linear(64, 8).bfloat16(), PackedLinear(nn.Linear(64, 128), precision)
    pairs = [(product, x.bfloat16() if product is products[1] else x) for product in products]
    some = 3, 5, 8, 17, 40, 64, 151  # one or two rows take another kernel on all processors
    return all(torch.equal(product(rows)[:n], product(rows[:n])) for product, rows in pairs for n in some)


def outputs_and_gradients(
    module: nn.Module, inputs: Iterable[Tensor], function: Callable[[], Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Runs `function`, backpropagates a fixed random gradient, and returns the output and all gradients by name."""
    module.zero_grad(set_to_none=True)
    inputs = list(inputs)
    for tensor in inputs:
        tensor.grad = None
    out = function()
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(3)).to(out)
    out.backward(upstream)
    gradients = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    gradients |= {f"input {i}": t.grad.clone() for i, t in enumerate(inputs) if t.grad is not None}
    return out.detach(), gradients


def assert_same_run(
    module: nn.Module,
    inputs: list[Tensor],
    actual: Callable[[], Tensor],
    expected: Callable[[], Tensor],
    dtype: torch.dtype = torch.float32,
    other: nn.Module | None = None,
) -> None:
    """Asserts equal outputs and equal gradients of all parameters and inputs; `other`: the module of `expected`."""
    out, gradients = outputs_and_gradients(module, inputs, actual)
    expected_out, expected_gradients = outputs_and_gradients(other or module, inputs, expected)
    assert gradients.keys() == expected_gradients.keys()
    assert_close(out, expected_out, dtype)
    # The gradient of a key bias is zero (a softmax does not see it): in bf16 pure noise, relative to its neighbours
    # small.
    scale = 0.1 * max(float(gradient.float().norm()) for gradient in expected_gradients.values())
    for name, gradient in gradients.items():
        assert_close(gradient, expected_gradients[name], dtype, bf16_error=0.2, scale=scale)


def states(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random states, the same for the same shape, that need a gradient."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype).requires_grad_()


def padding(lengths: list[int], size: int | None = None) -> Tensor:
    """(B, size) mask, True = padding, of rows with the given lengths."""
    size = max(lengths) if size is None else size
    return torch.arange(size) >= torch.tensor(lengths)[:, None]


def is_new_part(name: str, model: Any) -> bool:
    """Whether the tensor `name` belongs to a part that a checkpoint of a plain model does not have."""
    return any(f".{part}" in f".{name}" for part in model.config.new_parts)


def block_texts_alone(generator: Any) -> None:
    """Lets fairseq's generator compare n-grams of texts alone, without the padding behind them."""
    block = getattr(generator, "repeat_ngram_blocker", None)
    if not isinstance(block, NGramRepeatBlock):
        return
    original = block._no_repeat_ngram

    def of_step(tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        return original(tokens[:, : step + 1], lprobs, bsz, beam_size, step)

    block._no_repeat_ngram = of_step


def assert_alike(one: Any, other: Any, limit: float = 1e-5) -> None:
    """Asserts that two values of JSON are equal but for the last digits of numbers, as of two processes."""
    if isinstance(one, float) and isinstance(other, float):
        assert abs(one - other) <= limit * max(1.0, abs(one)), (one, other)
    elif isinstance(one, dict) and isinstance(other, dict):
        assert_alike(sorted(one), sorted(other))
        for name, value in one.items():
            assert_alike(value, other[name], limit)
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for each, own in zip(one, other, strict=True):
            assert_alike(each, own, limit)
    else:
        assert one == other
