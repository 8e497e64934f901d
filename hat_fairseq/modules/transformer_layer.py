"""What every transformer layer is made of: residual sub-layers, pre- or post-norm, and a feed-forward network.

Vaswani et al. 2017, section 3; parameter names (`fc1`, `fc2`, `final_layer_norm`) and the places of dropout are
fairseq's. `TransformerEncoderLayer` is the whole encoder layer; the hierarchical encoder is made of the same.

Legend: B rows, T tokens, C channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from ..kernels import ACTIVATIONS, Linear, feed_forward
from .attention import MultiheadAttention


@dataclass(frozen=True)
class LayerSizes:
    """Numbers of a transformer layer: channels, feed-forward channels, heads, dropout rates, scheme, norms' epsilon."""

    embed_dim: int
    ffn_embed_dim: int
    num_heads: int
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: str = "relu"
    normalize_before: bool = False
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"unknown activation {self.activation!r}; choose one of {sorted(ACTIVATIONS)}")

    def attention(self) -> MultiheadAttention:
        return MultiheadAttention(self.embed_dim, self.num_heads, self.attention_dropout)

    def layer_norm(self) -> nn.LayerNorm:
        return nn.LayerNorm(self.embed_dim, eps=self.layer_norm_eps)


class TransformerLayer(nn.Module):
    """Base of all layers: the residual scheme and the feed-forward network."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.fc1 = Linear(sizes.embed_dim, sizes.ffn_embed_dim)
        self.fc2 = Linear(sizes.ffn_embed_dim, sizes.embed_dim)
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        self.final_layer_norm = sizes.layer_norm()
        self.dropout = nn.Dropout(sizes.dropout)
        self.activation_dropout = nn.Dropout(sizes.activation_dropout)

    def residual(self, x: Tensor, layer_norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Post-norm LN(x + f(x)), or pre-norm x + f(LN(x)), with dropout on f's output."""
        if self.sizes.normalize_before:
            return x + self.dropout(sublayer(layer_norm(x)))
        return layer_norm(x + self.dropout(sublayer(x)))

    def feed_forward(self, x: Tensor) -> Tensor:
        dropout = self.activation_dropout.p if self.training else 0.0
        return feed_forward(x, self.fc1, self.fc2, self.sizes.activation, dropout)


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then feed-forward."""

    def __init__(self, sizes: LayerSizes) -> None:
        super().__init__(sizes)
        self.self_attn = sizes.attention()
        self.self_attn_layer_norm = sizes.layer_norm()

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """(B, T, C) -> (B, T, C); `padding_mask` (B, T), True = padding, no row all padding."""
        x = self.residual(x, self.self_attn_layer_norm, lambda h: self.self_attn(h, key_padding_mask=padding_mask)[0])
        return self.residual(x, self.final_layer_norm, self.feed_forward)
