"""Attention equals its dense definition, whatever is padded, cached, shared or causal."""

from functools import partial
from typing import Any

import pytest
import torch
from helpers import assert_close, assert_same_run, padding, states
from references import attention as reference
from torch import Tensor

from hat_fairseq.modules.attention import AttentionSizes, CrossAttention, HeadProjections, SelfAttention
from hat_fairseq.modules.batch_layout import safe_padding_mask
from hat_fairseq.modules.cache import DecoderCache, KeyCache
from hat_fairseq.networks.encoder import mask_of_keys

DTYPES = [torch.float32, torch.bfloat16]
LENGTHS = [1, 2, 7, 17, 31]


def make(kind: type[HeadProjections], dtype: torch.dtype = torch.float32, kv_heads: int | None = None) -> Any:
    torch.manual_seed(0)
    return kind(AttentionSizes(24, 4, kv_heads=kv_heads)).to(dtype).eval()


def visible(mask: Tensor) -> Tensor | None:
    return mask_of_keys(mask, torch.float32)


def dense(module: HeadProjections, query: Tensor, memory: Tensor, lengths: list[int], causal: bool) -> Tensor:
    rows = []
    for row, length in enumerate(lengths):
        allowed = (torch.arange(memory.size(1)) < length).expand(query.size(1), -1)
        if causal:
            allowed = allowed & torch.ones(query.size(1), memory.size(1), dtype=torch.bool).tril()
        rows.append(reference(module, query[row], memory[row], allowed)[0])
    return torch.stack(rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_self_attention_is_dense_causal_attention(length: int, dtype: torch.dtype) -> None:
    module, x = make(SelfAttention, dtype), states(3, length, 24, dtype=dtype)
    assert_same_run(module, [x], partial(module, x), partial(dense, module, x, x, [length] * 3, True), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("keys", LENGTHS)
def test_cross_attention_is_dense_attention(keys: int, kv_heads: int, dtype: torch.dtype) -> None:
    """Two hypotheses a document, padded and alone; with gradients, and in inference with a cache; and its weights."""
    module, x = make(CrossAttention, dtype, kv_heads), states(4, 5, 24, dtype=dtype)
    memory = states(2, keys, 24, dtype=dtype)

    def expected(lengths: list[int]) -> Tensor:
        copies = [n for n in lengths for _ in "ab"]
        return dense(module, x, memory.repeat_interleave(2, 0), copies, causal=False)

    for lengths in ([keys, (keys + 1) // 2], [keys, keys]):
        mask, cache = visible(padding(lengths)) if lengths[0] > lengths[1] else None, KeyCache()
        assert_same_run(module, [x, memory], partial(module, x, memory, mask), partial(expected, lengths), dtype)
        with torch.no_grad():
            steps = [module(x[:, i : i + 1], memory, mask, cache=cache) for i in range(5)]
            assert_close(torch.cat(steps, 1), expected(lengths), dtype)
        assert cache.keys is not None
        assert cache.keys.shape == (2, kv_heads, keys, 6)
    weights = module.weights(x[:2], memory)
    for row in range(2):
        assert_close(weights[row], reference(module, x[row], memory[row], torch.ones(5, keys).bool())[1], dtype)


def test_incremental_equals_full() -> None:
    module, x = make(SelfAttention), states(3, 70, 24)
    full = module(x)
    cache, begin, pieces = DecoderCache(1), 0, []
    for new in [5, *[1] * 55, 10]:  # a prefix, then one by one, then several at once
        pieces.append(module(x[:, begin : begin + new], cache.layers[0].self_attn))
        begin += new
    assert_close(torch.cat(pieces, 1), full)


def test_a_row_of_nothing_but_padding_is_finite() -> None:
    module, x = make(CrossAttention), states(2, 5, 24)
    mask = visible(safe_padding_mask(padding([5, 0])))
    out = module(x, x, mask)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    with torch.no_grad():
        assert module(x, x, mask).isfinite().all()  # in a decoding step


def test_dropout_changes_training_only() -> None:
    module, x = make(SelfAttention), states(2, 9, 24)
    module.dropout.p = 0.5
    still = module(x)
    assert torch.equal(module(x), still)
    module.train()
    assert not torch.equal(module(x), still)


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="24.*multiple.*5"):
        SelfAttention(AttentionSizes(24, 5))
    with pytest.raises(ValueError, match="3 rows of queries are not a multiple of 2"):
        make(CrossAttention)(states(3, 1, 24), states(2, 1, 24))
