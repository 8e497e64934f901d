"""`attend` is naive attention by every kernel that it chooses; dropout is the same in the backward pass."""

import os
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close, padding
from torch import Tensor

from hat_fairseq.kernels import attend, attention, blocks, naive, prepare_mask
from hat_fairseq.kernels.attention import CHUNK


def expected(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    return naive.attention(q.float(), k.float(), v.float(), mask, causal)[0].to(q)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_naive_attention(dtype: torch.dtype, gradients: bool) -> None:
    for queries, keys in [(1, 1), (1, 131), (4, 2), (16, 64), (17, 13)]:
        torch.manual_seed(keys)
        q = torch.randn(3, 2, queries, 8, dtype=dtype)
        k, v = torch.randn(2, 3, 2, 150, 8, dtype=dtype)[..., :keys, :]  # a view of longer buffers
        own = torch.rand(3, 1, queries, keys) < 0.5
        own[..., 0] = True
        with torch.set_grad_enabled(gradients):
            for mask in (None, ~padding([keys, (keys + 1) // 2, 1])[:, None, None], own):
                assert_close(attend(q, k, v, mask), expected(q, k, v, mask), dtype)
            assert_close(attend(q, k, v, causal=True), expected(q, k, v, None, causal=True), dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_heads_that_share_keys_are_naive_attention(dtype: torch.dtype) -> None:
    """Of 12 heads of queries, 3 for each head of keys."""
    for queries, keys in [(1, 13), (7, 131), (131, 511)]:
        torch.manual_seed(keys)
        q, (k, v) = torch.randn(3, 12, queries, 8, dtype=dtype), torch.randn(2, 3, 4, keys, 8, dtype=dtype)
        copied = k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)
        for mask in (None, ~padding([keys, (keys + 1) // 2, 1])[:, None, None]):
            for gradients in (True, False):
                with torch.set_grad_enabled(gradients):
                    assert_close(attend(q, k, v, mask), expected(q, *copied, mask), dtype)


@pytest.mark.parametrize(
    ("mask", "causal"), [(torch.ones(3, 5).bool(), False), (torch.ones(4, 1, 5).bool(), False), (None, True)]
)
def test_heads_that_share_keys_share_the_mask(mask: Any, causal: bool) -> None:
    q, k = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8)
    with pytest.raises(ValueError, match="the same for all heads and queries"):
        attend(q, k, k, mask, causal=causal)


def test_on_a_gpu_a_mask_is_added_to_the_scores() -> None:
    mask = torch.rand(2, 1, 5, 13) < 0.5
    assert prepare_mask(mask, torch.bfloat16) is mask
    on_gpu = prepare_mask(mask.to("meta"), torch.bfloat16)
    assert on_gpu.shape == mask.shape
    assert on_gpu.dtype is torch.bfloat16
    assert on_gpu.stride() == (80, 80, 16, 1)


@pytest.mark.parametrize(
    ("length", "keys", "dtype", "dropout", "gradients", "own", "wanted"),
    [
        (511, 512, torch.float32, 0.1, True, False, None),
        (512, 512, torch.float32, 0.1, True, False, "attention_in_chunks"),
        (128, 2048, torch.bfloat16, 0.1, True, False, "attention_in_chunks"),
        (256, 256, torch.bfloat16, 0.0, False, True, "attention_of_rows"),
        (256, 256, torch.float32, 0.0, False, True, None),
        (2, 2, torch.bfloat16, 0.0, False, False, "step_attention"),  # as many keys, but not of the queries' tokens
        (1, 1, torch.bfloat16, 0.0, False, True, "step_attention"),
        (attention.MAX_STEP_QUERIES + 1, 64, torch.bfloat16, 0.0, False, False, None),
        (256, 256, torch.bfloat16, 0.0, True, True, None),
    ],
)
def test_the_fastest_kernel_is_chosen(
    length: int,
    keys: int,
    dtype: torch.dtype,
    dropout: float,
    gradients: bool,
    own: bool,
    wanted: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kernel in ("attention_in_chunks", "attention_of_rows", "step_attention"):
        monkeypatch.setattr(attention, kernel, lambda *_, kernel=kernel: kernel)
    q, k = torch.zeros(1, 1, length, 8, dtype=dtype), torch.zeros(1, 1, keys, 8, dtype=dtype)
    with torch.set_grad_enabled(gradients):
        out = attend(q, k, k, torch.ones(1, 1, 1, keys).bool(), dropout, self_attention=own)
    assert (out if isinstance(out, str) else None) == wanted, (length, keys, dtype, dropout)


def in_one_row(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attend(q, k, v, torch.arange(256)[None, None, None] < 250)


def in_windows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Windows of 3 blocks of 64 keys; the first 5 keys are shared by all queries."""
    query, key = (windows := attention.Windows(64, 64, 64, 192)).positions(256, 256, q.device)
    seen = ((key >= 5) & (key < 250)).expand(4, 64, 192) & (query >= 0)
    mask = torch.cat([seen, torch.ones(4, 64, 5).bool()], dim=2).repeat(2, 1, 1)[:, None]
    return attention.attend_windows(q, k, v, mask, windows, shared=(k[:, :, :5], v[:, :, :5]))


def in_blocks(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each block of 64 queries attends to itself and to the block after it."""
    real = (torch.arange(256) < 250).view(1, 4, 64).expand(2, 4, 64)
    ids = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0]]).expand(2, 3, 4, 2)
    split = (x.unflatten(2, (4, 64)) for x in (q, k, v))
    return blocks.attend_blocks(*split, blocks.key_blocks(ids, real, q.dtype)).flatten(2, 3)


@pytest.mark.parametrize("kernel", [in_one_row, in_windows, in_blocks])
def test_gradients_in_bf16_are_those_of_fp32_rounded_once(kernel: Callable[..., Tensor]) -> None:
    """A shaken product has a rounding of its own, a unit in the last place."""
    dtype, shaken = torch.bfloat16, bool(os.environ.get("HAT_SHAKEN"))
    inputs = [states(256, number).detach().to(dtype).requires_grad_() for number in (1, 2, 3)]
    wide = [x.detach().float().requires_grad_() for x in inputs]
    upstream = states(256, 4).detach().to(dtype)
    with torch.autocast("cpu", dtype):  # which has SDPA in bf16
        out = kernel(*inputs)
    assert out.dtype is dtype
    expected = torch.autograd.grad(kernel(*wide), wide, upstream.float())
    for gradient, other in zip(torch.autograd.grad(out, inputs, upstream), expected, strict=True):
        error = (gradient.float() - other).abs().max() / other.abs().max()
        assert gradient.dtype is dtype
        assert error < torch.finfo(dtype).eps / (1 if shaken else 2)


def test_sdpa_of_few_keys_is_in_fp32_where_gradients_in_bf16_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    sdpa, types = F.scaled_dot_product_attention, []
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda q, *rest: types.append(q.dtype) or sdpa(q, *rest))
    for kernel, most in product((in_one_row, in_windows), (1 << 14, 0)):
        monkeypatch.setattr(attention, "MAX_IN_FP32", most)
        kernel(*(states(256, n).detach().bfloat16().requires_grad_() for n in (1, 2, 3)))
    assert types == [torch.float32, torch.bfloat16] * 2


def states(length: int, number: int) -> Tensor:
    """(2, 3, length, 8), laid out as projections are."""
    generator = torch.Generator().manual_seed(number)
    return torch.randn(2, length, 3, 8, generator=generator).transpose(1, 2).requires_grad_()


@pytest.mark.parametrize("kind", ["padding", "queries", "causal"])
def test_dropout_in_chunks_is_dense_attention_with_the_same_dropped_weights(kind: str) -> None:
    length, keys = CHUNK + 65, 900
    inputs, rate = [states(length, 1), states(keys, 2), states(keys, 3)], 0.3
    mask = {
        "padding": (torch.arange(keys) < torch.tensor([keys // 3, keys])[:, None])[:, None, None],
        "queries": torch.ones(length, keys, dtype=torch.bool).tril(2),
    }.get(kind)

    def attended(values: Tensor) -> Tensor:
        torch.manual_seed(11)
        return attend(inputs[0], inputs[1], values, mask, rate, kind == "causal")

    keep = attended(torch.eye(keys).expand(2, 3, -1, -1)).ne(0)  # with these values the outputs are the weights
    seen = naive.attention(*inputs, mask, kind == "causal")[1].ne(0)
    assert keep.sum() / seen.sum() == pytest.approx(1 - rate, abs=0.02)
    dense = naive.attention(*inputs, mask, kind == "causal")[1] * keep / (1 - rate) @ inputs[2]
    upstream = torch.randn(dense.shape)
    chunked = attended(inputs[2])
    assert_close(chunked, dense)
    gradients = [torch.autograd.grad(out, inputs, upstream) for out in (chunked, dense)]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other)


def test_no_matrix_of_weights_is_kept() -> None:
    q, sizes = torch.randn(1, 2, 1024, 8, requires_grad=True), []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):
        attend(q, q, q, None, 0.1)
        assert not any(size >= 1024 * CHUNK for size in sizes)
        F.scaled_dot_product_attention(q, q, q, None, 0.1)
        assert any(size >= 1024 * 1024 for size in sizes)


def test_a_padded_row_in_bf16_is_the_row_alone() -> None:
    """To the last bit, with a mask of the row's own too; the outputs of padding are zeros."""
    lengths = [700, 513, 300, 40, 2]
    q, k, v = torch.randn(3, 5, 4, 700, 32, dtype=torch.bfloat16)
    mask = (torch.arange(700) < torch.tensor(lengths)[:, None])[:, None, None]
    mask[0, ..., 5:300] = False
    dense = expected(q, k, v, mask)
    with torch.no_grad():
        together = attend(q, k, v, mask, self_attention=True)
        for row, length in enumerate(lengths):
            one = slice(row, row + 1)
            own = mask[one, ..., :length] if row == 0 else None
            alone = attend(*(x[one, :, :length] for x in (q, k, v)), own, self_attention=True)
            assert torch.equal(together[one, :, :length], alone)
            assert_close(alone, dense[one, :, :length], torch.bfloat16)
            assert not together[row, :, length:].any()
