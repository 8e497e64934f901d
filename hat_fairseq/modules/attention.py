"""Multi-head attention on torch's scaled dot product attention (SDPA).

Vaswani et al. 2017, section 3.2.2. `FullAttention` is the self-attention of an encoder. `MultiheadAttention` is the
causal self-attention and the cross-attention of a decoder. O(T x S) operations; memory O(T + S) where SDPA has a fused
kernel.

In beam search the hypotheses of a document share its keys: their rows of queries are joined to one longer row.

Legend: B rows, T queries, S keys, C channels, H heads, N heads of keys, E = C / H, D memory rows (documents), B = D x
beam.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..kernels import attend, naive, prepare_mask
from .batch_layout import BatchLayout
from .cache import GrowingCache, StaticCache
from .projections import HeadProjections, Width


def safe_padding_mask(padding_mask: Tensor) -> Tensor:
    """(B, S) padding mask in which a row of nothing but padding counts as unpadded.

    A softmax over no key is NaN, and so are its gradients. The outputs of such a row are never used.
    """
    return padding_mask & ~padding_mask.all(dim=1, keepdim=True)


def mask_of_keys(padding_mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """(D, S) padding mask -> (D, 1, 1, S) mask for `kernels.attend`; no row may be all padding. None stays None."""
    return None if padding_mask is None else prepare_mask(~padding_mask[:, None, None], dtype)


class FullAttention(HeadProjections):
    """Self-attention of an encoder: every token attends to every token of its row."""

    def allowed(self, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
        """Whether positions `query` attend to positions `key`, padding aside.

        Args:
            query, key: int64 positions that broadcast to each other, say (T, 1) and (1, S).
        Returns:
            bool, of the broadcast shape, or (B, ...) where it depends on the document.
        """
        return (query >= 0) & (key >= 0)

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        return self.attend_rows(x, layout.key_mask(x))

    def weights(self, x: Tensor, layout: BatchLayout, first_query_only: bool = False) -> Tensor:
        """(B, H, T, T) attention weights within rows, or (B, H, 1, T) those of the first position."""
        return self.row_weights(x, layout.key_mask(x), first_query_only)


@dataclass(frozen=True)
class Full:
    """`--encoder-attention full`."""

    width: Width = Width()  # noqa: RUF009 - frozen

    def build(self, embed_dim: int, num_heads: int, dropout: float, layer: int = 0) -> nn.Module:
        return FullAttention(embed_dim, num_heads, dropout, self.width.qkv_dim)


class MultiheadAttention(HeadProjections):
    """Causal self-attention or cross-attention of a decoder, with caches."""

    def forward(
        self,
        query: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        cache: GrowingCache | StaticCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from `query` to `memory`.

        Args:
            query: (B, T, C).
            memory: (D, S, C), B a multiple of D; None means self-attention.
            mask: over the keys, as `kernels.attend` takes it, broadcastable to (D, H, T, S); see `mask_of_keys`.
            causal: query t attends to keys up to t.
            cache: `GrowingCache` for causal self-attention without padding; `StaticCache` for cross-attention (its
                memory is projected once).
            need_weights: also return the weights, through an explicit softmax (for analysis; quadratic memory).
        Returns:
            (B, T, C) output, and (B, H, T, S) weights or None.
        """
        rows, length, _ = query.shape
        if isinstance(cache, GrowingCache):
            keys, values = cache.append(*self.keys_and_values(query))
            if past := keys.size(2) - length:  # these are visible to all, new tokens to themselves and to later ones
                new = torch.ones(length, keys.size(2), dtype=torch.bool, device=keys.device).tril(past)
                mask, causal = None if length == 1 else new, False
        elif isinstance(cache, StaticCache):
            keys, values = self._static_keys(query if memory is None else memory, cache)
        else:
            keys, values = self.keys_and_values(query if memory is None else memory)
        documents = keys.size(0)
        if rows % documents:
            raise ValueError(f"{rows} rows of queries are not a multiple of {documents} rows of keys")
        queries = self.heads(self.q_proj(query).view(documents, -1, self.embed_dim)).to(keys.dtype)
        weights = None
        if need_weights:
            out, weights = naive.attention(queries, keys, values, mask, self.dropout_rate, causal)
            # D x H x (beam T) x S -> B x H x T x S
            weights = weights.unflatten(2, (rows // documents, length)).transpose(1, 2).flatten(0, 1)
        else:
            out = attend(queries, keys, values, mask, self.dropout_rate, causal)
        # D x H x (beam T) x E -> B x T x C
        out = out.transpose(1, 2).reshape(rows, length, self.embed_dim)
        return self.out_proj(out), weights

    def _static_keys(self, memory: Tensor, cache: StaticCache) -> tuple[Tensor, Tensor]:
        if cache.keys is None or cache.values is None:
            keys, values = self.keys_and_values(memory)
            cache.keys, cache.values = keys.contiguous(), values.contiguous()  # once, because every step reads them
        return cache.keys, cache.values
