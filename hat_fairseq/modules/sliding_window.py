"""Sliding window attention: a token attends to its neighbours and to the global tokens.

Zhang et al. 2021 (Poolingformer), section 2.2.1, equations 3 and 4, and section 2.2.3, equations 12 and 13; the global
tokens are from Longformer. Token i attends to the tokens from i - w to i + w. A global token attends to all tokens, and
all tokens attend to it. Global and other tokens share the projections. O(T (w + G)) operations for G global tokens.

Legend: B documents, T tokens, C channels, H heads, E = C / H, N blocks of L queries with W keys each, G global tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..kernels import Windows, attend, attend_windows, prepare_mask
from ..options import option, unstated
from .attention import AttentionSizes, HeadProjections, join_heads
from .batch_layout import BatchLayout

CHUNK = 128  # queries computed together: fewer compute fewer masked scores, more share more keys
WINDOW = 128  # where nothing else is stated
GLOBAL_TOKENS = ("first", "question")


def global_tokens(tokens: Tensor, rule: str, pad: int, eos: int) -> Tensor:
    """Returns (B, T) True = a global token.

    Args:
        tokens: (B, T) token ids, padded on either side.
        rule: `first`, the first token; or `question`, the tokens before the first `</s>` that is not the last token.
    """
    assert rule in GLOBAL_TOKENS
    real = tokens.ne(pad)
    number = real.cumsum(dim=1)
    if rule == "first":
        return real & (number == 1)
    ends = tokens.eq(eos) & (number < number[:, -1:])
    return real & (ends.cumsum(dim=1) == 0) & ends.any(dim=1, keepdim=True)


@dataclass
class WindowFlags:
    """The flags of `--encoder-attention window`, and of the first level of `--encoder-attention pooling`."""

    attention_window: int | None = unstated(
        WINDOW, "window, pooling: the number of tokens on either side that a token attends to", least=1
    )
    global_tokens: str | None = option(
        None,
        "window, pooling: let all tokens attend to the first token, or to the question, which ends before the first "
        "</s> (default: to none of these)",
        choices=GLOBAL_TOKENS,
    )


class SlidingWindowAttention(HeadProjections):
    """Each token attends to the `window` tokens on either side, and to the layout's global tokens.

    `reach`: without global tokens, its output depends on so many tokens on either side.
    """

    def __init__(self, sizes: AttentionSizes, window: int = WINDOW) -> None:
        super().__init__(sizes)
        self.window = self.reach = window
        # With a chunk much longer than the window, most computed scores would be masked.
        chunk = min(CHUNK, max(32, window))
        self.windows = Windows(chunk, chunk, window, chunk + 2 * window)

    def near(self, query: Tensor, key: Tensor) -> Tensor:
        """Returns whether positions `query` have positions `key` in their window; both broadcast to each other."""
        return (query - key).abs() <= self.window

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C)."""
        return self.out_proj(self.output_of_heads(x, layout))

    def output_of_heads(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C), the output of the heads before the output projection."""
        queries, *shared = self.self_projections(x, layout.positions)
        keys, values = map(self.every_head, shared)
        real = None if (padding := layout.key_mask(x)) is None else padding.allowed
        if x.size(1) <= self.window + 1:
            return join_heads(attend(queries, keys, values, real, self.dropout_rate, self_attention=True))
        mask = layout.cached(("window", x.dtype, x.size(1), self.windows), lambda: self._mask(x, layout))
        if (where := layout.global_tokens) is None:
            return join_heads(attend_windows(queries, keys, values, mask, self.windows, self.dropout_rate))
        at_global = [self.heads(where.gather(join_heads(states))) for states in (queries, keys, values)]
        out = attend_windows(queries, keys, values, mask, self.windows, self.dropout_rate, (at_global[1], at_global[2]))
        everything = attend(at_global[0], keys, values, real, self.dropout_rate)
        return where.scatter(join_heads(out), join_heads(everything))

    def _mask(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B N, 1, L, W + G) mask of the windows' keys, then of the global keys outside of the window."""
        length = x.size(1)
        queries, keys = self.windows.positions(length, length, x.device)
        # Padding and positions beyond the last token attend to themselves, because a softmax over no key is NaN.
        allowed = (self.near(queries, keys) & layout.real(keys, length)) | (queries == keys)
        allowed = allowed.expand(len(x), -1, -1, -1)
        if (where := layout.global_tokens) is not None:
            outside = ~self.near(queries, where.positions[:, None, None])  # B x N x L x G
            if where.padding is not None:
                outside &= ~where.padding[:, None, None]
            allowed = torch.cat([allowed, outside], dim=-1)
        return prepare_mask(allowed.flatten(0, 1).unsqueeze(1), x.dtype)
