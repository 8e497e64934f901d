"""`attend` is naive attention by every kernel that it chooses, and chooses once for a shape."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from helpers import assert_close
from torch import Tensor

from hat_fairseq.kernels import attend, attention, naive, prepare_mask
from hat_fairseq.kernels.attention import MOST, attention_of_rows, step_attention
from hat_fairseq.kernels.blockwise_attention import blockwise_attention

pytestmark = pytest.mark.usefixtures("either_library")
SDPA = F.scaled_dot_product_attention


def expected(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool = False) -> Tensor:
    return naive.attention(q.float(), k.float(), v.float(), mask, causal=causal)[0].to(q)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("keys", [1, 2, 13, 64, 131])
@pytest.mark.parametrize("queries", [1, 4, MOST, MOST + 1])
def test_it_is_naive_attention(queries: int, keys: int, dtype: torch.dtype, gradients: bool) -> None:
    torch.manual_seed(keys)
    q = torch.randn(3, 2, queries, 8, dtype=dtype)
    k, v = torch.randn(2, 3, 2, 150, 8, dtype=dtype)[..., :keys, :]  # a view of longer buffers
    padding = torch.arange(keys) < torch.tensor([keys, (keys + 1) // 2, 1])[:, None]
    own = torch.rand(3, 1, queries, keys) < 0.5
    own[..., 0] = True
    with torch.set_grad_enabled(gradients):
        for mask in (None, padding[:, None, None, :], own):
            assert_close(attend(q, k, v, mask), expected(q, k, v, mask), dtype)
            assert_close(attend(q, k, v, mask, causal=True), expected(q, k, v, mask, causal=True), dtype)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("queries", "keys"), [(1, 13), (5, 15), (7, 131), (131, 511)])  # of 12, 3 for each of keys
def test_heads_that_share_keys_are_naive_attention(
    queries: int, keys: int, dtype: torch.dtype, gradients: bool
) -> None:
    torch.manual_seed(keys)
    q, (k, v) = torch.randn(3, 12, queries, 8, dtype=dtype), torch.randn(2, 3, 4, keys, 8, dtype=dtype)
    padding = torch.arange(keys) < torch.tensor([keys, (keys + 1) // 2, 1])[:, None]
    with torch.set_grad_enabled(gradients):
        for mask in (None, padding[:, None, None, :]):
            assert_close(attend(q, k, v, mask), expected(q, k, v, mask), dtype)
    copied = k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)
    assert torch.equal(expected(q, k, v, None), expected(q, *copied, None))


def test_heads_that_share_keys_share_the_mask() -> None:
    q, k = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8)
    for mask, causal in ((torch.ones(3, 5).bool(), False), (torch.ones(4, 1, 5).bool(), False), (None, True)):
        with pytest.raises(ValueError, match="the same for all heads and queries"):
            attend(q, k, k, mask, causal=causal)


@pytest.mark.parametrize("keys", [1, 7, 8, 13])
def test_an_additive_mask_is_the_bool_mask(keys: int) -> None:
    q, (k, v) = torch.randn(2, 3, 5, 8), torch.randn(2, 2, 3, keys, 8)
    mask = torch.rand(2, 1, 5, keys) < 0.5
    mask[..., 0] = True
    added = torch.zeros(2, 1, 5, keys).masked_fill(~mask, float("-inf"))
    with torch.no_grad():
        for causal in (False, True):
            assert_close(attend(q, k, v, added, causal=causal), attend(q, k, v, mask, causal=causal))


def test_a_mask_is_prepared_for_the_device() -> None:
    mask = torch.rand(2, 1, 5, 13) < 0.5
    assert prepare_mask(mask, torch.bfloat16) is mask
    added = prepare_mask(mask.to("meta"), torch.bfloat16)
    assert added.shape == mask.shape and added.dtype is torch.bfloat16 and added.stride() == (80, 80, 16, 1)


def test_the_fastest_kernel_is_chosen() -> None:
    fp32, bf16 = torch.float32, torch.bfloat16
    for arguments, kernel in [
        ((MOST, 4096, fp32, 0.0, False, False, False), step_attention),
        ((MOST, 4096, fp32, 0.0, False, True, False), SDPA),  # gradients are wanted
        ((MOST, 4096, fp32, 0.0, True, False, False), SDPA),
        ((MOST, 4096, fp32, 0.1, False, False, False), SDPA),
        ((MOST + 1, 4096, fp32, 0.0, False, False, False), SDPA),
        ((255, 255, fp32, 0.0, False, False, False), SDPA),
        ((256, 256, fp32, 0.0, False, False, False), SDPA),
        ((256, 256, fp32, 0.1, False, True, False), blockwise_attention),
        ((256, 256, bf16, 0.0, False, False, False, True), attention_of_rows),
        ((2, 2, bf16, 0.0, False, False, False, True), attention_of_rows),
        ((1, 1, bf16, 0.0, False, False, False, True), step_attention),
        ((2, 2, bf16, 0.0, False, False, False), step_attention),  # as many keys, but not of the queries' tokens
        ((256, 256, bf16, 0.0, False, True, False), SDPA),
        ((256, 256, bf16, 0.1, False, True, False), blockwise_attention),
        ((256, 256, fp32, 0.1, False, True, True), SDPA),  # under autocast
        ((256, 256, fp32, 1.0, False, True, False), SDPA),
    ]:
        assert attention._choose(*arguments) is kernel, arguments


def test_a_padded_row_in_bf16_is_the_row_alone() -> None:
    """To the last bit, with a mask of the row's own too; the outputs of padding are zeros."""
    lengths = [700, 513, 300, 40, 2]
    q, k, v = torch.randn(3, 5, 4, 700, 32, dtype=torch.bfloat16)
    mask = (torch.arange(700) < torch.tensor(lengths)[:, None])[:, None, None]
    mask[0, ..., 5] = False
    with torch.no_grad():
        together = attend(q, k, v, mask, self_attention=True)
        for row, length in enumerate(lengths):
            one = slice(row, row + 1)
            own = mask[one, ..., :length] if row == 0 else None
            alone = attend(*(x[one, :, :length] for x in (q, k, v)), own, self_attention=True)
            assert torch.equal(together[one, :, :length], alone)
            assert not together[row, :, length:].any()


def test_the_choice_is_made_once_for_a_shape() -> None:
    q, k = torch.randn(2, 3, 256, 8), torch.randn(2, 3, 300, 8)
    attention._choose.cache_clear()
    with torch.no_grad():
        for _ in range(5):
            assert_close(attend(q, k, k), expected(q, k, k, None))
            assert_close(attend(q[:, :, :4], k, k), expected(q[:, :, :4], k, k, None))
    assert attention._choose.cache_info().misses == 2


def test_the_choice_depends_on_the_mode() -> None:
    """The same shape with gradients, without, and under autocast."""
    q = torch.randn(1, 2, 4, 8)
    attention._choose.cache_clear()
    attend(q, q, q)
    with torch.no_grad():
        attend(q, q, q)
    with torch.autocast("cpu", torch.bfloat16):
        attend(q, q, q)
    assert attention._choose.cache_info().misses == 3
