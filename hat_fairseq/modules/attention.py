"""Multi-head attention: the projections that all attentions share, full self-attention, and those of a decoder.

Vaswani et al. 2017, section 3.2.2. Parameter names (`q_proj`, `k_proj`, `v_proj`, `out_proj`) and initialisation are
fairseq's, so checkpoints of BART, RoBERTa and fairseq load. Every attention is a subclass of `HeadProjections`, which
decides the keys that a query attends to. O(T x K) operations; memory O(T + K) where SDPA has a fused kernel.

Legend: B rows, T queries (U in a decoder), K keys, C channels, H heads, N heads of keys and values, E channels of a
head (C / H, or qkv_dim / H), D memory rows (documents), B = D x beam.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ..kernels import Linear, PackedLinear, attend, naive, rotate
from ..options import option
from .batch_layout import BatchLayout, KeyMask
from .cache import KeyCache


@dataclass
class WidthFlags:
    """The flag of attentions whose heads may have another width than the layer."""

    encoder_qkv_dim: int | None = option(
        None, "the width of queries, keys and values (default: --encoder-embed-dim)", least=1
    )


@dataclass(frozen=True)
class Projections:
    """What the self-attentions of an encoder's layers have, whatever their pattern.

    Attributes:
        kv_heads: heads of keys and values; None: as many as of queries.
        bias: of all four maps.
        rotary: the base of rotary positions (Su et al. 2021); None: there are none.
        rotary_factor: positions are divided by it.
    """

    kv_heads: int | None = None
    bias: bool = True
    rotary: float | None = None
    rotary_factor: float = 1.0


@dataclass(frozen=True)
class AttentionSizes:
    """What every attention is made of.

    Attributes:
        embed_dim: channels C of what it reads and returns.
        num_heads: H.
        dropout: of the attention weights.
        inner_dim: channels of all heads together, a multiple of H; C by default.
        kv_heads: N, a divisor of H; each is for a group of H / N consecutive heads of queries (grouped-query
            attention, Ainslie et al. 2023, section 2.2). H by default; 1 is multi-query attention (Shazeer 2019).
    """

    embed_dim: int
    num_heads: int
    dropout: float = 0.0
    inner_dim: int | None = None
    kv_heads: int | None = None


def join_heads(x: Tensor) -> Tensor:
    """Maps (B, H, T, E) -> (B, T, H x E)."""
    return x.transpose(1, 2).flatten(2)


class HeadProjections(nn.Module):
    """Linear maps to and from the heads of an attention."""

    def __init__(self, sizes: AttentionSizes) -> None:
        super().__init__()
        embed_dim, num_heads = sizes.embed_dim, sizes.num_heads
        inner_dim, kv_heads = sizes.inner_dim or embed_dim, sizes.kv_heads or num_heads
        if inner_dim % num_heads:
            raise ValueError(f"the width of all heads ({inner_dim}) must be a multiple of their number ({num_heads})")
        self.embed_dim, self.num_heads, self.kv_heads = embed_dim, num_heads, kv_heads
        self.head_dim = inner_dim // num_heads
        self.dropout = nn.Dropout(sizes.dropout)  # a module, so that --dropout-schedule can set its rate
        self.k_proj = Linear(embed_dim, kv_heads * self.head_dim)
        self.v_proj = Linear(embed_dim, kv_heads * self.head_dim)
        self.q_proj = Linear(embed_dim, inner_dim)
        self.out_proj = Linear(inner_dim, embed_dim)
        self.rotary, self.rotary_factor = Projections.rotary, Projections.rotary_factor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises as fairseq does: q, k and v count as one matrix of three times the width, hence the gain."""
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    def configure(self, projections: Projections) -> None:
        """Changes the projections of a new module."""
        if projections.kv_heads not in (None, self.num_heads):
            self.kv_heads = projections.kv_heads
            for name in ("k_proj", "v_proj"):
                setattr(self, name, Linear(self.embed_dim, self.kv_heads * self.head_dim))
            self.reset_parameters()
        for projection in () if projections.bias else (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            projection.register_parameter("bias", None)
        self.rotary, self.rotary_factor = projections.rotary, projections.rotary_factor

    @property
    def dropout_rate(self) -> float:
        """Returns the rate at which attention weights are dropped now; 0 outside training."""
        return self.dropout.p if self.training else 0.0

    def heads(self, x: Tensor) -> Tensor:
        """Maps (B, T, N x E) -> (B, N, T, E); N: H, or of keys and values `kv_heads`."""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def project(self, projection: nn.Module, x: Tensor, turn: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Maps (B, T, C) -> (B, N, T, E) by one of `q_proj`, `k_proj`, `v_proj`, and `turn`; N as in `heads`.

        With packed weights the result has `k_proj.cache_dtype`, so that queries, keys and values agree.
        """
        x = self.heads(projection(x))
        x = x if turn is None else turn(x)
        return x.to(self.k_proj.cache_dtype) if isinstance(self.k_proj, PackedLinear) else x

    def merge(self, x: Tensor) -> Tensor:
        """Maps (B, H, T, E) -> (B, T, C), through the output projection."""
        return self.out_proj(join_heads(x))

    def every_head(self, x: Tensor) -> Tensor:
        """Maps (B, N, T, E) keys or values -> (B, H, T, E): copies of what heads share."""
        return x if x.size(1) == self.num_heads else x.repeat_interleave(self.num_heads // x.size(1), dim=1)

    def attend_rows(self, x: Tensor, mask: KeyMask | None, positions: Tensor | None = None) -> Tensor:
        """Attends within each of (R, L, C) rows; an empty row attends uniformly. `positions`: as `rotate` has them."""
        queries, keys, values = self.self_projections(x, positions)
        allowed, of_rows = None if mask is None else mask.allowed, True
        if allowed is not None and allowed.size(-2) > 1:  # keys differ between queries, not only between rows
            keys, values, of_rows = self.every_head(keys), self.every_head(values), False
        out = self.merge(attend(queries, keys, values, allowed, self.dropout_rate, self_attention=of_rows))
        if mask is None or mask.empty is None:
            return out
        # There is nothing to attend to. Equal weights on all values, so that all kernels agree, give that of the mean.
        mean = self.every_head(self.heads(self.v_proj(x.mean(dim=1, keepdim=True))))
        return torch.where(mask.empty, self.merge(mean), out)

    def row_weights(self, x: Tensor, mask: KeyMask | None, positions: Tensor | None = None) -> Tensor:
        """Returns (R, H, L, L) attention weights within rows."""
        queries, keys = (self.heads(f(x)) for f in (self.q_proj, self.k_proj))
        if self.rotary is not None:
            queries, keys = (rotate(each, self.rotary, positions, self.rotary_factor) for each in (queries, keys))
        return naive.attention(queries, keys, keys, None if mask is None else mask.allowed)[1]

    def self_projections(self, x: Tensor, positions: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Maps (B, T, C) -> queries, (B, H, T, E), keys and values, (B, N, T, E); with their rotation, if any."""
        turn = None
        if self.rotary is not None:
            turn = partial(rotate, theta=self.rotary, positions=positions, factor=self.rotary_factor)
        keys, values = self.project(self.k_proj, x, turn), self.project(self.v_proj, x)
        return self.project(self.q_proj, x, turn), keys, values

    def attend(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends from (B, T, C) to (B, K, C) `memory`; `mask`: as `kernels.attend` takes it. Returns (B, T, C)."""
        keys, values = self.keys_and_values(memory)
        queries = self.project(self.q_proj, query)
        return self.merge(attend(queries, keys, values, mask, self.dropout_rate, self_attention=query is memory))

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Maps (B, K, C) -> (B, N, K, E) keys and values."""
        return self.project(self.k_proj, memory), self.project(self.v_proj, memory)

    def explicit_weights(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Computes the (B, H, T, K) weights of `attend`, without dropout; quadratic memory, for analysis."""
        queries, keys = self.heads(self.q_proj(query)), self.heads(self.k_proj(memory))
        return naive.attention(queries, keys, keys, mask)[1]


class FullAttention(HeadProjections):
    """Self-attention of an encoder: every token attends to every token of its row."""

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C)."""
        return self.attend_rows(x, layout.key_mask(x), layout.positions)

    def weights(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Returns (B, H, T, T) attention weights within rows."""
        return self.row_weights(x, layout.key_mask(x), layout.positions)


class SelfAttention(HeadProjections):
    """Causal self-attention of a decoder: a token attends to itself and to earlier tokens."""

    def forward(self, x: Tensor, cache: KeyCache | None = None) -> Tensor:
        """Maps (B, U, C) -> (B, U, C).

        `cache`: keys and values of the tokens before these, to which it adds those of these; no token is padding.
        """
        keys, values = self.keys_and_values(x)
        mask, length = None, x.size(1)
        if cache is not None:
            keys, values = cache.append(keys, values)
            if length > 1:  # a single new token attends to all keys
                past = keys.size(2) - length
                mask = torch.ones(length, keys.size(2), dtype=torch.bool, device=keys.device).tril(past)
        queries = self.project(self.q_proj, x)
        return self.merge(attend(queries, keys, values, mask, self.dropout_rate, causal=cache is None))

    def weights(self, x: Tensor, cache: KeyCache | None = None) -> Tensor:
        """Returns (B, H, U, K) attention weights of `forward`, after which the cache has the K tokens so far."""
        queries = self.heads(self.q_proj(x))
        keys = self.heads(self.k_proj(x)) if cache is None else cache.keys.to(queries)
        allowed = torch.ones(x.size(1), keys.size(2), dtype=torch.bool, device=x.device).tril(keys.size(2) - x.size(1))
        return naive.attention(queries, keys, keys, allowed)[1]


class CrossAttention(HeadProjections):
    """Attention of a decoder to states of the source, which all hypotheses of a document share."""

    def forward(
        self, query: Tensor, memory: Tensor, mask: Tensor | None = None, cache: KeyCache | None = None
    ) -> Tensor:
        """Attends from `query` to `memory`.

        Args:
            query: (B, U, C), B a multiple of D.
            memory: (D, K, C).
            mask: of the memory's keys, (D, 1, 1, K), as `kernels.attend` takes it.
            cache: of the keys and values of the memory, which is then projected once.
        Returns:
            (B, U, C).
        """
        rows, length, _ = query.shape
        if cache is None:
            keys, values = self.keys_and_values(memory)
        else:
            keys, values = cache.once(lambda: self.keys_and_values(memory))
        documents = keys.size(0)  # whose hypotheses share the keys: their queries are joined to one longer row
        if rows % documents:
            raise ValueError(f"{rows} rows of queries are not a multiple of {documents} rows of keys")
        queries = self.project(self.q_proj, query.reshape(documents, -1, self.embed_dim))
        out = attend(queries, keys, values, mask, self.dropout_rate)
        # D x H x (beam U) x E -> B x U x C
        return self.out_proj(out.transpose(1, 2).reshape(rows, length, -1))

    def weights(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Returns (B, H, U, K) attention weights of `forward`."""
        copies = len(query) // len(memory)
        memory = memory.repeat_interleave(copies, dim=0)
        mask = None if mask is None else mask.repeat_interleave(copies, dim=0)
        return self.explicit_weights(query, memory, mask)
