"""Input embeddings: token + position (+ role or token type), layer norm, dropout; and the extension of positions.

Positions are absolute, sinusoidal or learned. The rows of a table are fairseq's: rows 0..pad belong to no position (row
`pad` is zero), and position p is row pad + 1 + p. Padding on either side has no position. Extension: `random` as in
Rohde et al. 2021, section 4.1 ("from 512 to 3072"), `tile` as in Longformer, `repeat-last` as in Huang et al. 2021.

`Embeds` is a mixin, not a module, so that parameters keep fairseq's names (`encoder.embed_tokens.weight`, ...).

Legend: B rows, T tokens, C channels.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

STRATEGIES = ("random", "tile", "repeat-last")


def position_rows(tokens: Tensor, pad: int, earlier: int = 0) -> Tensor:
    """Maps (B, T) token ids, before which are `earlier` others -> (B, T) rows of the position table.

    Padding gets row `pad`.
    """
    real = tokens.ne(pad)
    return ((real.cumsum(dim=1) + earlier) * real) + pad


class LearnedPositions(nn.Embedding):
    """Learned position embeddings for up to `max_positions` tokens; `forward` takes rows of the table.

    `pad`: id of the padding token (1 in fairseq).
    """

    def __init__(self, max_positions: int, embed_dim: int, pad: int) -> None:
        super().__init__(max_positions + pad + 1, embed_dim, padding_idx=pad)
        reset_table(self)


def sines_and_cosines(rows: int, embed_dim: int, device: torch.device | None = None) -> Tensor:
    """Computes (rows, C) sines, then cosines as in fairseq (Vaswani et al. 2017, section 3.5)."""
    half = embed_dim // 2
    steps = torch.arange(max(rows, half), device=device, dtype=torch.float32)
    frequencies = torch.exp(steps[:half] * (-math.log(10000) / max(half - 1, 1)))
    angles = steps[:rows, None] * frequencies
    return torch.cat([angles.sin(), angles.cos(), angles.new_zeros(rows, embed_dim % 2)], dim=1)


class SinusoidalPositions(nn.Module):
    """A fixed table of `sines_and_cosines`, in which padding has zeros."""

    table: Tensor

    def __init__(self, max_positions: int, embed_dim: int, pad: int) -> None:
        super().__init__()
        self.pad = pad
        self.register_buffer("table", torch.empty(max_positions + pad + 1, embed_dim), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Computes the table, in fp32 and on its device."""
        rows, embed_dim = self.table.shape
        table = sines_and_cosines(rows, embed_dim, self.table.device)
        table[self.pad] = 0
        self.table.copy_(table)

    def forward(self, rows: Tensor) -> Tensor:
        """Maps (...) rows of the table -> (..., C)."""
        return self.table[rows]


def extend_positions(
    pretrained: Tensor, fresh: Tensor, strategy: str, pad: int = 1, random_from: int | None = None
) -> Tensor:
    """Makes a table of `fresh`'s length that begins with the pretrained rows.

    Args:
        pretrained: (pad + 1 + P, C) table of P positions.
        fresh: (pad + 1 + Q, C) newly initialised table, Q >= P; `random` takes its new rows from here.
        strategy: `random`, `tile` or `repeat-last`.
        random_from: first random position, `random` only (512 in the paper); default P, which keeps all pretrained
            rows.
    Raises:
        ValueError: `random_from` outside 0..P, or with another strategy.
    """
    assert strategy in STRATEGIES
    first = pad + 1
    known = pretrained[first:]
    missing = len(fresh) - len(pretrained)
    if random_from is not None and (strategy != "random" or not 0 <= random_from <= len(known)):
        raise ValueError(
            f"random positions from {random_from}: only with strategy random (not {strategy}), from 0 to {len(known)}"
        )
    if strategy == "random":
        first += len(known) if random_from is None else random_from
        return torch.cat([pretrained[:first], fresh[first:].to(pretrained)])
    if strategy == "tile":
        new = known.repeat(math.ceil(missing / len(known)), 1)[:missing]
    else:
        new = known[-1:].expand(missing, -1)
    return torch.cat([pretrained, new])


def norm_of(width: int, eps: float, rms_norm: bool = False, bias: bool = True) -> nn.Module:
    """Builds a layer norm; with `rms_norm` that of Zhang and Sennrich 2019, which has no mean and no bias."""
    return nn.RMSNorm(width, eps=eps) if rms_norm else nn.LayerNorm(width, eps=eps, bias=bias)


@dataclass(frozen=True)
class EmbeddingSizes:
    """Hyperparameters of an embedding.

    `positions`: the most tokens of a row. `table`: add embeddings of positions; without, attentions have rotary ones.
    """

    positions: int
    learned: bool = True
    table: bool = True
    layer_norm: bool = True
    layer_norm_eps: float = 1e-5
    rms_norm: bool = False
    norm_bias: bool = True
    scale: float = 1.0  # of the embeddings of tokens
    dropout: float = 0.0
    roles: int = 0  # of speakers
    token_type: bool = False  # add a vector to all tokens, as RoBERTa of transformers does
    positions_flag: str = "--max-positions"  # which gives the model more positions


def token_table(num_tokens: int, embed_dim: int, pad: int) -> nn.Embedding:
    table = nn.Embedding(num_tokens, embed_dim, padding_idx=pad)
    reset_table(table)
    return table


def reset_table(table: nn.Embedding) -> None:
    """Initialises embeddings as fairseq does; the row of padding is zeros."""
    nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
    if table.padding_idx is not None:
        nn.init.zeros_(table.weight[table.padding_idx])


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
    embed_positions: LearnedPositions | SinusoidalPositions | None

    def build_embedding(self, table: nn.Embedding, sizes: EmbeddingSizes) -> None:
        """Adds the embeddings; `table` is that of the tokens."""
        embed_dim, pad = table.embedding_dim, table.padding_idx
        assert pad is not None
        self.embedding_sizes, self.pad = sizes, pad
        self.embed_tokens = table
        positions = LearnedPositions if sizes.learned else SinusoidalPositions
        self.embed_positions = positions(sizes.positions, embed_dim, pad) if sizes.table else None
        if sizes.token_type:
            self.embed_token_type = nn.Embedding(1, embed_dim)
        # of the roles; the name is that of checkpoints
        self.embed_segments = token_table(sizes.roles, embed_dim, pad) if sizes.roles else None
        norm = norm_of(embed_dim, sizes.layer_norm_eps, sizes.rms_norm, sizes.norm_bias) if sizes.layer_norm else None
        self.layernorm_embedding = norm
        self.embed_dropout = nn.Dropout(sizes.dropout)

    def embed(
        self, tokens: Tensor, rows: Tensor, roles: Tensor | None = None, embeddings: Tensor | None = None
    ) -> Tensor:
        """Maps (B, T) token ids and rows of the position table -> (B, T, C).

        Args:
            roles: (B, T) ids, iff there is a table of them.
            embeddings: (B, T, C), of the tokens, unscaled; None: those of the table.
        Raises:
            ValueError: roles of the batch or of the model alone.
        """
        sizes = self.embedding_sizes
        if (roles is None) != (self.embed_segments is None):
            has, lacks = ("model", "batch") if roles is None else ("batch", "model")
            raise ValueError(f"the {has} has roles, but the {lacks} has none: check --role-stream")
        x = sizes.scale * (self.embed_tokens(tokens) if embeddings is None else embeddings)
        if self.embed_positions is not None:
            x = x + self.embed_positions(rows)
        if sizes.token_type:
            x = x + self.embed_token_type(tokens.new_zeros(1))
        if self.embed_segments is not None:
            x = x + self.embed_segments(roles)
        return self.embed_dropout(x if self.layernorm_embedding is None else self.layernorm_embedding(x))

    def check_positions(self, rows: Tensor, earlier: int = 0) -> None:
        """Raises ValueError if the (B, T) rows of `position_rows` are more than the table has."""
        longest = self.embedding_sizes.positions
        # Looking at the rows synchronises with the device; only a batch wider than the table needs it.
        if earlier + rows.size(1) > longest and int(rows.max()) > longest + self.pad:
            flag = self.embedding_sizes.positions_flag
            shorter = "generate shorter texts" if "target" in flag else "shorten the input"
            raise ValueError(
                f"a row of {int(rows.max()) - self.pad} tokens, but only {longest} positions: "
                f"raise {flag} in training, or {shorter}"
            )
