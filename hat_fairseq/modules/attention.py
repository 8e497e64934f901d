"""Multi-head attention on torch's scaled dot product attention (SDPA).

Vaswani et al. 2017, section 3.2.2. The parameters carry fairseq's names (`q_proj`, `k_proj`, `v_proj`, `out_proj`), so
BART, RoBERTa and fairseq checkpoints load. O(T x S) operations; memory O(T + S) where SDPA has a fused kernel.

One class serves self-attention (`memory=None`), causal self-attention and cross-attention. Where there are more query
rows than memory rows, the rows of a document (its beams) are folded into the query length: they read the same keys.
With a cache the beams share the keys of their self-attention in the same way, each under its own mask.

Legend: B rows, T queries, S keys, C channels, H heads, E = C / H, D memory rows (documents), B = D x beam.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..kernels import Linear, attend, naive
from .cache import GrowingCache, StaticCache


def safe_padding_mask(padding_mask: Tensor) -> Tensor:
    """(B, S) padding mask in which a row of nothing but padding counts as unpadded.

    A softmax over no key at all is NaN and would spread through the gradients; the outputs of such a row are never
    used.
    """
    return padding_mask & ~padding_mask.all(dim=1, keepdim=True)


class MultiheadAttention(nn.Module):
    """Attention of `num_heads` heads over `embed_dim` channels.

    Args:
        embed_dim: channels C of queries, memory and output.
        num_heads: heads H; must divide `embed_dim`.
        dropout: probability with which attention weights are dropped in training.
    Raises:
        ValueError: `embed_dim` is not a multiple of `num_heads`.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim ({embed_dim}) must be a multiple of num_heads ({num_heads})")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout = nn.Dropout(dropout)  # SDPA takes its rate
        self.k_proj = Linear(embed_dim, embed_dim)
        self.v_proj = Linear(embed_dim, embed_dim)
        self.q_proj = Linear(embed_dim, embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # fairseq's choice: q, k and v count as one matrix of three times the width, hence the gain.
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        memory: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        causal: bool = False,
        cache: GrowingCache | StaticCache | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attends from `query` to `memory`.

        Args:
            query: (B, T, C).
            memory: (D, S, C), B a multiple of D; None means self-attention.
            key_padding_mask: (D, S), True = padding; at least one key of every row is not padding.
            causal: query t sees keys up to t.
            cache: `GrowingCache` for causal self-attention without padding, opened for T tokens; `StaticCache` for
                cross-attention (its memory is projected once).
            need_weights: also return the weights, through an explicit softmax (for analysis; quadratic memory).
        Returns:
            (B, T, C) output, and (B, H, T, S) weights or None.
        """
        rows, length, _ = query.shape
        mask = None
        if isinstance(cache, StaticCache):
            keys, values = self._static_keys(query if memory is None else memory, cache)
        elif cache is not None:
            # R x T x C -> D x (K T) x C: the new tokens of a document's hypotheses lie side by side
            new = query.reshape(cache.beam_mask.documents, -1, self.embed_dim)
            keys, values = cache.append(*self._project(new))
            mask, causal = cache.beam_mask.allowed, False
        else:
            keys, values = self._project(query if memory is None else memory)
        documents = keys.size(0)
        if rows % documents:
            raise ValueError(f"{rows} query rows cannot share {documents} memory rows")
        queries = self._heads(self.q_proj(query).view(documents, -1, self.embed_dim)).to(keys.dtype)
        if key_padding_mask is not None and mask is None:
            mask = ~key_padding_mask[:, None, None, :]
        dropout = self.dropout.p if self.training else 0.0
        weights = None
        if need_weights:
            out, weights = naive.attention(queries, keys, values, mask, dropout, causal)
            # D x H x (beam T) x S -> B x H x T x S
            weights = weights.unflatten(2, (rows // documents, length)).transpose(1, 2).flatten(0, 1)
        else:
            out = attend(queries, keys, values, mask, dropout, causal)
        # D x H x (beam T) x E -> B x T x C
        out = out.transpose(1, 2).reshape(rows, length, self.embed_dim)
        return self.out_proj(out), weights

    def _heads(self, x: Tensor) -> Tensor:
        """B x T x C -> B x H x T x E."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _project(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self._heads(self.k_proj(memory)), self._heads(self.v_proj(memory))
        dtype = self.k_proj.cache_dtype or keys.dtype
        return keys.to(dtype), values.to(dtype)

    def _static_keys(self, memory: Tensor, cache: StaticCache) -> tuple[Tensor, Tensor]:
        if cache.keys is None or cache.values is None:
            keys, values = self._project(memory)
            cache.keys, cache.values = keys.contiguous(), values.contiguous()  # once, for all the steps that read them
        return cache.keys, cache.values
