"""Blockwise attention equals dense attention under the same dropout mask, outputs and gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, padding
from torch import Tensor

from hat_fairseq.kernels import attend, attention, blockwise_attention, naive
from hat_fairseq.kernels.cpu_dropout import BlockDropout
from hat_fairseq.modules.attention import MultiheadAttention

pytestmark = pytest.mark.usefixtures("either_library")
DTYPES = [torch.float32, torch.bfloat16]
RATES = list(enumerate([0.0, 0.3]))  # of dropout
SIZES = [(1, 1), (64, 64), (65, 131), (131, 65), (150, 150), (7, 300)]
CASES = [(size, kind) for size in SIZES for kind in ("none", "right", "left", "holes")]
CASES += [((size, size), kind) for size in (1, 64, 150) for kind in ("causal", "lower")]


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 queries, however small the matrices are."""
    monkeypatch.setattr(attention, "_choose", lambda *_: blockwise_attention.blockwise_attention)
    monkeypatch.setattr(blockwise_attention, "BLOCK", 64)


def states(length: int, number: int, dtype: torch.dtype) -> Tensor:
    """(2, 3, length, 8), laid out as projections are."""
    generator = torch.Generator().manual_seed(number)
    return torch.randn(2, length, 3, 8, generator=generator).to(dtype).transpose(1, 2).requires_grad_()


def allowed(kind: str, length: int, keys: int) -> Tensor | None:
    """What `attend` is given."""
    few = padding([max(1, keys // 3), keys], keys)
    if kind == "right":
        return ~few[:, None, None]
    if kind == "left":
        return ~few.flip(1)[:, None, None]
    if kind == "holes":
        keep = torch.rand(2, 1, 1, keys, generator=torch.Generator().manual_seed(1)) < 0.5
        return keep.index_fill(3, torch.tensor([keys // 2]), True)
    if kind == "lower":
        return torch.ones(length, keys, dtype=torch.bool).tril() & ~few[:, None, None] | torch.eye(keys)[:length].bool()
    return None


def dropped(seed: int, shape: tuple[int, ...], mask: Tensor | None, causal: bool, rate: float) -> Tensor:
    """(B, H, T, S) True = kept: the masks of all blocks put together, over the keys that each block looks at."""
    rows, heads, length, keys = shape
    size = min(length, 64)
    dropout, kept = BlockDropout(seed, size * keys, rate), torch.ones(shape, dtype=torch.bool)
    for row in range(rows):
        for head in range(heads):
            for first in range(0, length, size):
                last = min(first + size, length)
                seen = torch.arange(min(keys, last) if causal else keys)
                if mask is not None:
                    places = mask.expand(shape)[row, head].any(0).nonzero().flatten()
                    seen = torch.arange(int(places.min()), int(places.max()) + 1)
                dropout.advance()
                ones = torch.ones(last - first, len(seen))
                kept[row, head, first:last, seen[0] : seen[-1] + 1] = dropout.drop(ones, ones).bool()
    return kept


def dense(inputs: list[Tensor], mask: Tensor | None, kept: Tensor, rate: float, causal: bool) -> Tensor:
    out, _ = naive.attention(*(x.float() for x in inputs), mask, rate, causal, kept)
    return out.to(inputs[0])


def run(function, inputs: list[Tensor]) -> list[Tensor]:
    out = function()
    upstream = torch.randn(out.shape, generator=torch.Generator().manual_seed(9)).to(out)
    return [out, *torch.autograd.grad(out, inputs, upstream)]


# Every case with both rates and both types, and all pairs of these, but not all three together.
PAIRS = [
    (*case, rate, DTYPES[(number + position) % 2]) for number, case in enumerate(CASES) for position, rate in RATES
]


@pytest.mark.parametrize(("size", "kind", "rate", "dtype"), PAIRS)
def test_equals_dense_attention_with_the_same_dropped_weights(
    size: tuple[int, int], kind: str, rate: float, dtype: torch.dtype
) -> None:
    length, keys = size
    inputs = [states(length, 1, dtype), states(keys, 2, dtype), states(keys, 3, dtype)]
    mask, causal = allowed(kind, length, keys), kind == "causal"
    torch.manual_seed(11)
    actual = run(lambda: attend(*inputs, mask, rate, causal), inputs)
    torch.manual_seed(11)
    seed = int(torch.empty((), dtype=torch.int64).random_())
    shape = (2, 3, length, keys)
    kept = dropped(seed, shape, mask, causal, rate) if rate else torch.ones(shape)
    expected = run(lambda: dense(inputs, mask, kept, rate, causal), inputs)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype is dtype
        assert_close(ours, theirs, dtype)


def test_without_dropout_it_is_sdpa() -> None:
    inputs = [states(131, 1, torch.float32), states(70, 2, torch.float32), states(70, 3, torch.float32)]
    ours = run(lambda: attend(*inputs, None), inputs)
    theirs = run(lambda: F.scaled_dot_product_attention(*inputs), inputs)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other)


def test_a_seed_repeats_a_run_and_calls_differ() -> None:
    q = states(40, 1, torch.float32)
    torch.manual_seed(3)
    first, second = attend(q, q, q, None, 0.5), attend(q, q, q, None, 0.5)
    torch.manual_seed(3)
    assert torch.equal(attend(q, q, q, None, 0.5), first) and not torch.equal(first, second)


def test_checkpointed_activations_drop_the_same_weights() -> None:
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    module = MultiheadAttention(24, 3, dropout=0.4).train()
    x = torch.randn(2, 70, 24, requires_grad=True)
    results = []
    for wrapped in (False, True):
        torch.manual_seed(1)
        out = checkpoint(module, x, use_reentrant=False)[0] if wrapped else module(x)[0]
        results.append([out, *torch.autograd.grad(out.square().sum(), [x, *module.parameters()])])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_no_matrix_of_weights_is_kept() -> None:
    """What the backward pass needs grows with T, not with T x T."""
    kept = []
    for length in (512, 1024):
        q = torch.randn(1, 2, length, 8, requires_grad=True)
        sizes: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):  # noqa: B023
            attend(q, q, q, None, 0.1)
        kept.append(sum(sizes))
    assert kept[1] == 2 * kept[0] == 3 * 2 * 1024 * 8
