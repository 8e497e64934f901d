"""Attention to the sentences, inside an encoder.

Rohde et al. 2021, section 7: an encoder layer attends to the states of the BOS tokens after its self-attention. The
paper leaves open which tokens are queries: `tokens`, all of them, as in the decoder; `bos`, only the BOS tokens, while
the others pass unchanged. O(T S) beside the self-attention's O(T^2). Where every token is a BOS both are one
self-attention more.

Legend: B documents, T tokens, S sentences of the longest document, H heads, C channels.
"""

from torch import Tensor

from .batch_layout import BatchLayout
from .projections import HeadProjections

QUERIES = ("tokens", "bos")


class SentenceAttention(HeadProjections):
    """Every position attends to the representatives; without representatives in the layout, to every position."""

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
