"""Two-level attention: the paper's definition, its limits, and which tokens are global."""

import math
from functools import partial

import pytest
import references
import torch
import torch.nn.functional as F
from attention_patterns import is_global
from helpers import assert_close, outputs_and_gradients, padding, states
from torch import Tensor

from hat_fairseq.kernels import Windows, attend_windows, naive
from hat_fairseq.modules.attention import AttentionSizes
from hat_fairseq.modules.batch_layout import BatchLayout, arrange_documents
from hat_fairseq.modules.pooling import Pooling
from hat_fairseq.modules.pooling_attention import PoolingAttention, SecondLevel
from hat_fairseq.modules.sliding_window import global_tokens

BOS, PAD, EOS = 0, 1, 2


def with_random_weights(attention: PoolingAttention) -> PoolingAttention:
    for pooling in (attention.pooled.key_pooling, attention.pooled.value_pooling):
        if pooling.weight is not None:
            torch.nn.init.normal_(pooling.weight)
    return attention.eval()


POOLINGS = pytest.mark.parametrize("pooling", ["mean", "max", "ldconv", "mean-ldconv"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pooling", "window", "kernel", "stride", "lengths"),
    [
        ("mean", 12, 5, 4, [549, 11]),  # several blocks of each phase
        *((pooling, 13, 5, 4, [61, 14, 13, 1, 0]) for pooling in ("mean", "max", "ldconv", "mean-ldconv")),
        ("max", 9, 3, 3, [50, 9, 10]),
        ("ldconv", 30, 2, 5, [97]),
        ("mean-ldconv", 70, 5, 4, [41, 3]),
    ],
)
def test_the_second_level_is_the_papers_definition(
    pooling: str, window: int, kernel: int, stride: int, lengths: list[int]
) -> None:
    """Outputs and gradients in fp64, each document alone against all in one batch."""
    level = SecondLevel(window, kernel, stride, pooling)
    attention = with_random_weights(PoolingAttention(AttentionSizes(8, 2), 7, level)).double()
    x, mask = states(len(lengths), max(lengths), 8, dtype=torch.float64), padding(lengths)

    def batched() -> Tensor:
        layout = BatchLayout(mask if mask.any() else None, empty_rows=0 in lengths)
        return attention._second_level(x, layout)[~mask]

    def literal() -> Tensor:
        rows = [literal_second_level(attention, row[:length]) for row, length in zip(x, lengths, strict=True) if length]
        return torch.cat(rows)

    (out, gradients), (expected, others) = (outputs_and_gradients(attention, [x], run) for run in (batched, literal))
    torch.testing.assert_close(out, expected, atol=1e-12, rtol=1e-12)
    for name, gradient in others.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-12, rtol=1e-12)


def literal_second_level(attention: PoolingAttention, x: Tensor) -> Tensor:
    """One document, (T, C) -> (T, C), head by head."""
    level, pooled, heads = attention.level, attention.pooled, []
    q, k, v = (attention.heads(projection(x[None]))[0] for projection in (pooled.q_proj, pooled.k_proj, pooled.v_proj))
    for head in range(attention.num_heads):
        pools = [partial(references.pooled_cell, p, head=head) for p in (pooled.key_pooling, pooled.value_pooling)]
        sizes = level.window, level.kernel, level.stride
        heads.append(references.pooled_window_attention(q[head], k[head], v[head], *sizes, *pools))
    return torch.cat(heads, dim=-1)


@POOLINGS
def test_a_cell_without_tokens_is_zero_and_finite(pooling: str) -> None:
    x = states(1, 2, 5, 4).requires_grad_()
    real = torch.tensor([[[True, True, True], [True, False, False], [False, False, False]]])
    out = Pooling(pooling, 3, 2, 4)(x, real)
    assert not out[:, :, 2].any()
    assert out.shape == (1, 2, 3, 4)
    assert_close(out[:, :, 1], x[:, :, 1])
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert not x.grad[:, :, 3:].any()


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("tokens", [1, 2, 3, 6])
def test_ldconv_takes_its_weights_from_the_middle_token(kernel: int, tokens: int) -> None:
    """The token number ceil((1 + K) / 2) of the cell (Zhang et al. 2021, equation 9), or the first beyond the end."""
    pooling, x = Pooling("ldconv", kernel, 2, 4), states(1, 2, kernel, 4)
    torch.nn.init.normal_(pooling.weight)
    real = (torch.arange(kernel) < tokens)[None, None]
    middle = math.ceil((1 + kernel) / 2)
    context = x[0, :, middle - 1 if middle <= tokens else 0]  # (H, E)
    scores = torch.einsum("hke,he->hk", pooling.weight, context)[:, : min(tokens, kernel)]
    expected = torch.einsum("hk,hke->he", scores.softmax(dim=1), x[0, :, :tokens])
    assert_close(pooling(x, real)[0, :, 0], expected)


@pytest.mark.parametrize(
    "windows", [Windows(4, 4, 3, 10), Windows(8, 2, 1, 5), Windows(6, 6, 0, 3), Windows(5, 5, 13, 31)], ids=str
)
def test_windows_are_attention_under_their_mask(windows: Windows) -> None:
    length = min(9, windows.step * -(-19 // windows.block))
    positions = windows.positions(19, length, torch.device("cpu"))[1].squeeze(1)
    inputs = [states(2, 3, n, 8 + i)[..., :8].requires_grad_() for i, n in enumerate((19, length, length, 2, 2))]
    queries, keys, values, *shared = inputs
    allowed = F.pad((positions >= 0) & (positions < length), (0, 2), value=True)
    mask = allowed[:, None, None].repeat(2, 1, 1, 1)
    out = attend_windows(queries, keys, values, mask, windows, shared=(shared[0], shared[1]))
    dense = (positions.unsqueeze(-1) == torch.arange(length)).any(dim=1).repeat_interleave(windows.block, 0)[:19]
    both = [torch.cat(pair, dim=2) for pair in zip((keys, values), shared, strict=True)]
    expected = naive.attention(queries, *both, mask=F.pad(dense, (0, 2), value=True))[0]
    assert_close(out, expected)
    gradients = [torch.autograd.grad(y.sum() + y.square().sum(), inputs, retain_graph=True) for y in (out, expected)]
    for actual, wanted in zip(*gradients, strict=True):
        assert_close(actual, wanted)


def test_which_tokens_are_global() -> None:
    tokens = torch.tensor(
        [
            [BOS, 7, 8, EOS, EOS, BOS, 9, EOS, PAD],
            [PAD, PAD, BOS, 7, EOS, BOS, 8, 9, EOS],
            [BOS, 7, 8, 9, 7, 8, 9, 7, EOS],
            [PAD] * 9,
        ]
    )
    mark = partial(global_tokens, rule="question", pad=PAD, eos=EOS)
    question = mark(tokens)
    assert question.nonzero().tolist() == [[0, 0], [0, 1], [0, 2], [1, 2], [1, 3]]
    first = global_tokens(tokens, "first", PAD, EOS)
    assert first.nonzero().tolist() == [[0, 0], [1, 2], [2, 0]]
    layout = arrange_documents(tokens, PAD, mark_global=mark).layout
    assert layout.global_tokens is not None
    assert is_global(layout, torch.arange(9)).nonzero().tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]]
    assert arrange_documents(tokens[2:], PAD, mark_global=mark).layout.global_tokens is None
