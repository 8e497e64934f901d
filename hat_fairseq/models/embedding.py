"""Input embeddings of encoder and decoder: token + position (+ segment) embeddings, layer norm, dropout.

`EmbedsTokens` is a mixin, not a module, so that parameters keep fairseq's names (`encoder.embed_tokens.weight`, ...).
"""

import math

from torch import Tensor, nn

from ..modules.positions import LearnedPositions, SinusoidalPositions
from .config import TokenEncoderConfig


def token_table(num_tokens: int, embed_dim: int, pad: int) -> nn.Embedding:
    table = nn.Embedding(num_tokens, embed_dim, padding_idx=pad)
    nn.init.normal_(table.weight, std=embed_dim**-0.5)
    nn.init.zeros_(table.weight[pad])
    return table


def initialise(model: nn.Module, how: str = "bert") -> None:
    """Initialises all linear layers and embeddings; biases and padding rows are zero. Runs on the meta device too.

    Args:
        how: `bert`: N(0, 0.02). `xavier`: Xavier-uniform, embeddings N(0, 1), as in Long Range Arena.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear) and how == "xavier":
            nn.init.xavier_uniform_(module.weight)
        elif isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=1.0 if how == "xavier" else 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])


class EmbedsTokens:
    """Gives an encoder or decoder its embeddings; call `build_embedding` from the constructor."""

    embed_tokens: nn.Embedding
    embed_positions: LearnedPositions | SinusoidalPositions
    embed_segments: nn.Embedding | None
    layernorm_embedding: nn.LayerNorm | None
    embed_dropout: nn.Dropout
    positions_flag = "--max-source-positions"  # the flag that gives the model more positions

    def build_embedding(
        self,
        config: TokenEncoderConfig,
        side: str,
        embed_tokens: nn.Embedding,
        max_positions: int,
        num_segments: int = 0,
    ) -> None:
        """Adds the embeddings of `side` (encoder or decoder); with `num_segments` 0 no segment embeddings."""
        embed_dim, pad = embed_tokens.embedding_dim, embed_tokens.padding_idx
        assert pad is not None
        self.embed_tokens = embed_tokens
        positions = LearnedPositions if getattr(config, f"{side}_learned_pos") else SinusoidalPositions
        self.embed_positions = positions(max_positions, embed_dim, pad)
        self.embed_segments = token_table(num_segments, embed_dim, pad) if num_segments else None
        norm = nn.LayerNorm(embed_dim, eps=config.layer_norm_eps)
        self.layernorm_embedding = norm if config.layernorm_embedding else None
        self._embed_scale = 1.0 if config.no_scale_embedding else math.sqrt(embed_dim)
        self.embed_dropout = nn.Dropout(config.dropout)

    def embed(self, tokens: Tensor, start: int = 0, segments: Tensor | None = None) -> Tensor:
        """(B, T) token ids -> (B, T - start, C); `segments`: (B, T) segment ids, iff there is a segment table."""
        if (segments is None) != (self.embed_segments is None):
            has, lacks = ("model", "batch") if segments is None else ("batch", "model")
            raise ValueError(f"the {has} has segments, but the {lacks} has none: check --role-stream")
        try:
            positions = self.position_vectors(tokens, start)
        except ValueError as error:
            raise ValueError(f"{error}: raise {self.positions_flag}, or shorten the input") from None
        x = self._embed_scale * self.embed_tokens(tokens[:, start:]) + positions
        if self.embed_segments is not None and segments is not None:
            x = x + self.embed_segments(segments[:, start:])
        return self._normalised(x)

    def embed_at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """(B, T) token ids, without padding, and their positions from 0, broadcastable to (B, T) -> (B, T, C)."""
        pad = self.embed_tokens.padding_idx
        assert pad is not None
        return self._normalised(
            self._embed_scale * self.embed_tokens(tokens) + self.embed_positions.at(positions + pad + 1)
        )

    def _normalised(self, x: Tensor) -> Tensor:
        return self.embed_dropout(x if self.layernorm_embedding is None else self.layernorm_embedding(x))

    def position_vectors(self, tokens: Tensor, start: int) -> Tensor:
        """(B, T) token ids -> (B, T - start, C) vectors of their positions; ValueError for too many tokens."""
        return self.embed_positions(tokens, start)
