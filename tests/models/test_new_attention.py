"""A fifth attention is one file and one entry: LongT5's transient-global attention, and the table that takes it."""

from dataclasses import dataclass

import pytest
import references
import torch
import torch.nn.functional as F
from building import TINY_ENCODER, build
from helpers import assert_same_run, padding
from torch import Tensor, nn

from hat_fairseq.kernels import Windows, attend_windows, prepare_mask
from hat_fairseq.modules.attention import AttentionSizes, HeadProjections
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.networks.config import ATTENTIONS, Attention
from hat_fairseq.options import option


@dataclass
class TransientFlags:
    """The flags of `--encoder-attention transient-global`; `EncoderConfig` would have them as a base."""

    transient_window: int = option(4, "tokens on either side", least=1)
    transient_block: int = option(3, "tokens of a block, whose sum is a key for all tokens", least=1)


class TransientGlobalAttention(HeadProjections):
    """A window, and the normalised sum of each block of tokens as one more key (Guo et al. 2022, section 3.1.2).

    Without LongT5's relative positions, because the models here have absolute ones. O(T (w + T / block)) operations.
    """

    def __init__(self, sizes: AttentionSizes, window: int, block: int) -> None:
        super().__init__(sizes)
        self.window, self.block = window, block
        self.windows = Windows(32, 32, window, 32 + 2 * window)
        self.block_norm = nn.RMSNorm(sizes.embed_dim, eps=1e-6)

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        keys, values = self.keys_and_values(x)
        block_keys, block_values = self.keys_and_values(self.blocks(x, layout))
        mask = layout.cached(("transient", x.dtype, x.size(1), self.windows, self.block), lambda: self.mask(x, layout))
        shared = (block_keys, block_values)
        queries = self.heads(self.q_proj(x))
        return self.merge(attend_windows(queries, keys, values, mask, self.windows, self.dropout_rate, shared))

    def blocks(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) states -> (B, G, C) normalised sums of the blocks."""
        real = x if layout.padding is None else x.masked_fill(layout.padding.unsqueeze(-1), 0)
        blocks = F.pad(real, (0, 0, 0, -x.size(1) % self.block)).unflatten(1, (-1, self.block))
        return self.block_norm(blocks.sum(dim=2))

    def mask(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B N, 1, L, W + G): the window's tokens, and the blocks that have a token."""
        length = x.size(1)
        queries, keys = self.windows.positions(length, length, x.device)
        near = ((queries - keys).abs() <= self.window) & layout.real(keys, length)
        near = (near | (queries == keys)).expand(len(x), -1, -1, -1)  # padding attends to itself
        first = torch.arange(0, length, self.block, device=x.device)  # padding is on the right
        blocks = layout.real(first, length).expand(len(x), -1)[:, None, None].expand(*near.shape[:3], -1)
        return prepare_mask(torch.cat([near, blocks], dim=-1).flatten(0, 1).unsqueeze(1), x.dtype)


def dense(attention: TransientGlobalAttention, x: Tensor) -> Tensor:
    """(T, C) -> (T, C): each token over the tokens near it and all blocks, with one softmax."""
    size, window = attention.block, attention.window
    blocks = [attention.block_norm(x[first : first + size].sum(dim=0)) for first in range(0, len(x), size)]
    out = []
    for i in range(len(x)):
        memory = torch.cat([x[max(0, i - window) : i + window + 1], torch.stack(blocks)])
        allowed = torch.ones(1, 1, len(memory), dtype=torch.bool)
        out.append(references.attention(attention, x[i : i + 1], memory, allowed)[0])
    return torch.cat(out)


@pytest.mark.parametrize("lengths", [[1], [7, 3, 1], [65, 33, 32, 5]], ids=str)
def test_a_model_takes_it_and_it_is_its_definition(lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    flags = TransientFlags()
    build_one = lambda _, sizes, layer: TransientGlobalAttention(  # noqa: E731
        sizes, flags.transient_window, flags.transient_block
    )
    monkeypatch.setitem(ATTENTIONS, "transient-global", Attention((), build_one))
    model = build("hat_roberta_base", f"{TINY_ENCODER} --encoder-attention transient-global")
    attention, mask = model.core.layers[1].self_attn, padding(lengths)
    x = torch.randn(*mask.shape, 24, requires_grad=True)
    layout = BatchLayout(mask if mask.any() else None)
    expected = lambda: torch.cat([dense(attention, x[row, :n]) for row, n in enumerate(lengths)])  # noqa: E731
    assert_same_run(attention, [x], lambda: attention(x, layout)[~mask], expected)
