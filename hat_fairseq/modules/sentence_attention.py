"""Attention to the sentences, for encoder layers.

Rohde et al. 2021, section 7: after its self-attention an encoder layer attends to the states of the BOS tokens. The
paper does not say which tokens are queries: `tokens` means all of them, as in the decoder; `bos` means the BOS tokens
only, and the states of other tokens stay unchanged. O(T S) operations.

Legend: B documents, T tokens, S sentences of the longest document, H heads, C channels.
"""

from torch import Tensor

from .batch_layout import BatchLayout
from .projections import HeadProjections

QUERIES = ("tokens", "bos")


class SentenceAttention(HeadProjections):
    """Every position attends to the layout's representatives; if it has none, to every position."""

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        memory, allowed = self._memory(x, layout)
        return self.attend(x, memory, allowed)

    def weights(self, x: Tensor, layout: BatchLayout, first_query_only: bool = False) -> Tensor:
        """(B, H, T, S) attention weights of `forward`, or (B, H, 1, S) those of the first position."""
        memory, allowed = self._memory(x, layout)
        return self.explicit_weights(x[:, :1] if first_query_only else x, memory, allowed)

    def _memory(self, x: Tensor, layout: BatchLayout) -> tuple[Tensor, Tensor | None]:
        inner = layout
        if layout.representatives is not None:
            x, inner = layout.representatives.gather(x), layout.among
        mask = inner.key_mask(x)
        return x, None if mask is None else mask.allowed
