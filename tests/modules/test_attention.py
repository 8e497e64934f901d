"""Attention equals its dense definition, whatever is padded, cached, shared or causal."""

import pytest
import torch
from helpers import assert_close, assert_same_run, outputs_and_gradients, padding
from references import attention as reference
from torch import Tensor

from hat_fairseq.modules.attention import MultiheadAttention, mask_of_keys, safe_padding_mask
from hat_fairseq.modules.cache import DecoderCache, KeyCache

DTYPES = [torch.float32, torch.bfloat16]
LENGTHS = [1, 2, 7, 16, 17, 31]


def make(dtype: torch.dtype = torch.float32, kv_heads: int | None = None) -> MultiheadAttention:
    torch.manual_seed(0)
    return MultiheadAttention(24, 4, kv_heads=kv_heads).to(dtype).eval()


def visible(mask: Tensor) -> Tensor | None:
    return mask_of_keys(mask, torch.float32)


def states(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype).requires_grad_()


def dense(module: MultiheadAttention, query: Tensor, memory: Tensor, lengths: list[int], causal: bool) -> Tensor:
    rows = []
    for row, length in enumerate(lengths):
        allowed = (torch.arange(memory.size(1)) < length).expand(query.size(1), -1)
        if causal:
            allowed = allowed & torch.ones(query.size(1), memory.size(1), dtype=torch.bool).tril()
        rows.append(reference(module, query[row], memory[row], allowed)[0])
    return torch.stack(rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_self_attention_is_dense_attention(length: int, causal: bool, dtype: torch.dtype) -> None:
    module, x = make(dtype), states(3, length, 24, dtype=dtype)
    lengths = [length, max(1, length // 2), 1]  # right padding, down to a single token
    mask = padding(lengths)
    assert_same_run(
        module,
        [x],
        lambda: module(x, mask=visible(mask), causal=causal),
        lambda: dense(module, x, x, lengths, causal),
        dtype,
    )
    assert_same_run(
        module,
        [x],
        lambda: module(x, causal=causal),
        lambda: dense(module, x, x, [length] * 3, causal),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("queries", [1, 5])
@pytest.mark.parametrize("keys", LENGTHS)
def test_cross_attention_is_dense_attention(keys: int, queries: int, dtype: torch.dtype) -> None:
    module, x, memory = make(dtype), states(2, queries, 24, dtype=dtype), states(2, keys, 24, dtype=dtype)
    lengths = [keys, (keys + 1) // 2]
    mask = padding(lengths)
    assert_same_run(
        module,
        [x, memory],
        lambda: module(x, memory, visible(mask)),
        lambda: dense(module, x, memory, lengths, causal=False),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_attention_to_as_many_keys_as_queries(dtype: torch.dtype) -> None:
    """In inference, where self-attention in bf16 leaves out queries that are padding."""
    module, x, memory = make(dtype), states(2, 7, 24, dtype=dtype), states(2, 7, 24, dtype=dtype)
    with torch.no_grad():
        out = module(x, memory, visible(padding([7, 3])))
        assert_close(out, dense(module, x, memory, [7, 3], causal=False), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("keys", LENGTHS)
def test_heads_that_share_keys_are_dense_attention(keys: int, kv_heads: int, dtype: torch.dtype) -> None:
    """Two hypotheses a document, padded and alone; with gradients, and in inference with a cache."""
    module, x, memory = make(dtype, kv_heads), states(4, 5, 24, dtype=dtype), states(2, keys, 24, dtype=dtype)
    for lengths in ([keys, (keys + 1) // 2], [keys, keys]):
        mask, cache = visible(padding(lengths)) if lengths[0] > lengths[1] else None, KeyCache()

        def expected(lengths: list[int] = lengths) -> Tensor:
            return dense(module, x, memory.repeat_interleave(2, 0), [n for n in lengths for _ in "ab"], causal=False)

        assert_same_run(module, [x, memory], lambda mask=mask: module(x, memory, mask), expected, dtype)
        with torch.no_grad():
            steps = [module(x[:, i : i + 1], memory, mask, cache=cache) for i in range(5)]
            assert_close(torch.cat(steps, 1), expected(), dtype)
        assert cache.keys is not None and cache.keys.shape == (2, kv_heads, keys, 6)


def test_as_many_heads_of_keys_as_of_queries_are_the_default() -> None:
    default, module, x, memory = make(), make(kv_heads=4), states(4, 3, 24), states(2, 5, 24)
    expected, actual = (outputs_and_gradients(m, [x, memory], lambda m=m: m(x, memory)) for m in (default, module))
    assert torch.equal(actual[0], expected[0]) and actual[1].keys() == expected[1].keys()
    assert all(torch.equal(actual[1][name], gradient) for name, gradient in expected[1].items())


@pytest.mark.parametrize("kv_heads", [None, 1, 2])
def test_weights_are_those_of_the_definition(kv_heads: int | None) -> None:
    module, x, memory = make(kv_heads=kv_heads), states(2, 3, 24), states(2, 5, 24)
    mask = padding([5, 2])
    weights = module.weights(x, memory, visible(mask))
    assert weights.shape == (2, 4, 3, 5)
    for row in range(2):
        assert_close(weights[row], reference(module, x[row], memory[row], (~mask[row]).expand(3, -1))[1])


@pytest.mark.parametrize("beam", [2, 3, 5])
def test_the_beams_of_a_document_share_its_keys(beam: int) -> None:
    module, memory, x = make(), states(2, 7, 24), states(2 * beam, 3, 24)
    mask = padding([7, 4])
    shared = module(x, memory, visible(mask))
    copied = module(x, memory.repeat_interleave(beam, 0), visible(mask.repeat_interleave(beam, 0)))
    assert_close(shared, copied)


def test_incremental_equals_full() -> None:
    module, x = make(), states(3, 70, 24)
    full = module(x, causal=True)
    cache, begin, pieces = DecoderCache(1), 0, []
    for new in [5, *[1] * 55, 10]:  # a prefix, then one by one, then several at once
        pieces.append(module(x[:, begin : begin + new], causal=True, cache=cache.layers[0].self_attn))
        begin += new
    assert_close(torch.cat(pieces, 1), full)


@pytest.mark.parametrize("beam", [2, 5])
def test_reordered_hypotheses_attend_to_their_own_tokens(beam: int) -> None:
    """A beam search's reordering, against attention over every hypothesis's own tokens."""
    module, cache = make(), DecoderCache(1)
    tokens = torch.empty(2 * beam, 0, 24)
    for step in range(40):
        tokens = torch.cat([tokens, torch.randn(2 * beam, 1, 24, generator=torch.Generator().manual_seed(step))], 1)
        out = module(tokens[:, -1:], causal=True, cache=cache.layers[0].self_attn)
        assert_close(out, module(tokens, causal=True)[:, -1:])
        rows = torch.randint(2 * beam, (2 * beam,), generator=torch.Generator().manual_seed(step))
        cache.reorder(rows, None)
        tokens = tokens[rows]


def test_static_cache_projects_once_and_stays_right_after_documents_finish() -> None:
    module, memory, x = make(), states(3, 7, 24), states(6, 1, 24)
    cache = DecoderCache(1)
    static = cache.layers[0].encoder_attn
    first = module(x, memory, cache=static)
    keys = static.keys
    cache.reorder(torch.tensor([1, 0, 2, 2, 5, 4]), None)  # within the beams: nothing to do
    assert static.keys is keys
    cache.reorder(torch.tensor([1, 1, 5, 4]), torch.tensor([0, 2]))  # document 1 is finished
    assert static.keys.size(0) == 2
    rows = [0, 1, 4, 5]
    assert_close(module(x[rows], memory[[0, 2]], cache=static), first[rows])


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_nothing_but_padding_is_finite(dtype: torch.dtype) -> None:
    module, x = make(dtype), states(2, 5, 24, dtype=dtype)
    out = module(x, mask=visible(safe_padding_mask(padding([5, 0]))))
    out.sum().backward()
    assert out.isfinite().all() and x.grad.isfinite().all()


def test_dropout_changes_training_only() -> None:
    module, x = make(), states(2, 9, 24)
    module.dropout.p = 0.5
    still = module(x)
    assert torch.equal(module(x), still)
    module.train()
    assert not torch.equal(module(x), still)


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="24.*multiple.*5"):
        MultiheadAttention(24, 5)
    with pytest.raises(ValueError, match="3 rows of queries are not a multiple of 2"):
        make()(states(3, 1, 24), states(2, 1, 24))


def test_equals_fairseq_with_the_same_weights() -> None:
    from fairseq.modules import MultiheadAttention as FairseqAttention

    module, x, memory = make(), states(3, 6, 24), states(3, 9, 24)
    fairseq_attention = FairseqAttention(24, 4, encoder_decoder_attention=True).eval()
    fairseq_attention.load_state_dict(module.state_dict())
    mask = padding([9, 4, 1])
    expected = fairseq_attention(
        x.transpose(0, 1), memory.transpose(0, 1), memory.transpose(0, 1), key_padding_mask=mask, static_kv=True
    )[0]
    assert_close(module(x, memory, visible(mask)), expected.transpose(0, 1))
