"""Input embeddings of encoder and decoder: token + position (+ role or token type), layer norm, dropout.

`Embeds` is a mixin, not a module, so that parameters keep fairseq's names (`encoder.embed_tokens.weight`, ...).

Legend: B rows, T positions, C channels.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from ..modules.positions import LearnedPositions, SinusoidalPositions


@dataclass(frozen=True)
class EmbeddingSizes:
    """The numbers of an embedding.

    `roles`: number of roles of speakers, 0: none. `token_type`: add a vector to all tokens, as RoBERTa of transformers
    does. `scale`: of the embeddings of tokens. `positions_flag`: the flag that gives the model more positions.
    """

    positions: int
    learned: bool = True
    layer_norm: bool = True
    layer_norm_eps: float = 1e-5
    scale: float = 1.0
    dropout: float = 0.0
    roles: int = 0
    token_type: bool = False
    positions_flag: str = "--max-positions"


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


class Embeds:
    """Gives an encoder or decoder its embeddings; call `build_embedding` from the constructor."""

    embed_tokens: nn.Embedding
    embed_positions: LearnedPositions | SinusoidalPositions

    def build_embedding(self, table: nn.Embedding, sizes: EmbeddingSizes) -> None:
        """Adds the embeddings; `table` is that of the tokens."""
        embed_dim, pad = table.embedding_dim, table.padding_idx
        assert pad is not None
        self.embedding_sizes, self.pad = sizes, pad
        self.embed_tokens = table
        positions = LearnedPositions if sizes.learned else SinusoidalPositions
        self.embed_positions = positions(sizes.positions, embed_dim, pad)
        if sizes.token_type:
            self.embed_token_type = nn.Embedding(1, embed_dim)
        self.embed_segments = token_table(sizes.roles, embed_dim, pad) if sizes.roles else None
        norm = nn.LayerNorm(embed_dim, eps=sizes.layer_norm_eps) if sizes.layer_norm else None
        self.layernorm_embedding = norm
        self.embed_dropout = nn.Dropout(sizes.dropout)

    def embed(self, tokens: Tensor, rows: Tensor, roles: Tensor | None = None) -> Tensor:
        """(B, T) token ids and rows of the position table -> (B, T, C); `roles`: (B, T) ids, iff there is a table.

        Raises:
            ValueError: roles of the batch or of the model alone.
        """
        sizes = self.embedding_sizes
        if (roles is None) != (self.embed_segments is None):
            has, lacks = ("model", "batch") if roles is None else ("batch", "model")
            raise ValueError(f"the {has} has roles, but the {lacks} has none: check --role-stream")
        x = sizes.scale * self.embed_tokens(tokens) + self.embed_positions(rows)
        if sizes.token_type:
            x = x + self.embed_token_type.weight[0]
        if self.embed_segments is not None:
            x = x + self.embed_segments(roles)
        return self.embed_dropout(x if self.layernorm_embedding is None else self.layernorm_embedding(x))

    def check_positions(self, rows: Tensor) -> None:
        """Raises ValueError if the (B, T) rows of the position table are more than it has."""
        longest = self.embedding_sizes.positions
        # Looking at the rows synchronises with the device; only a batch wider than the table needs it.
        if rows.size(1) > longest and int(rows.max()) > longest + self.pad:
            raise ValueError(
                f"a row of {int(rows.max()) - self.pad} tokens, but only {longest} positions: "
                f"raise {self.embedding_sizes.positions_flag}, or shorten the input"
            )
