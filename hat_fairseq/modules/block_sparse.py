"""Block-sparse attention: global, neighbouring and random blocks of keys.

Zaheer et al. 2020 (BigBird, section 2 and appendix D), as in Liu et al. 2022 (ERNIE-Sparse), section 3.1. Tokens are
divided into blocks. A token attends to all tokens of its own block and of the blocks around it (the window), of the
global blocks at the beginning and at the end of the document, and of a few random blocks; tokens of global blocks
attend to all tokens. The random blocks are drawn for each head and number of blocks with a fixed seed, so they are the
same in training and evaluation: for BigBird's pattern by the rules of the published code
(https://github.com/google-research/bigbird), else from the whole document, as the paper describes. A document that is
too short for random blocks has full attention. All of this follows from the document's own length, not from that of
other documents in the batch. O(T) operations.

Legend: B documents, T tokens, C channels, H heads, E = C / H, N blocks of L tokens, K key blocks of a query block, G
tokens of global blocks.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import KeyBlocks, attend, attend_blocks, key_blocks, prepare_mask
from .attention import HeadProjections, Width
from .batch_layout import BatchLayout
from .options import option

# For these lengths the published code draws random blocks from the first 1,024 tokens, for each block of 4,096 tokens.
SPECIAL_LENGTHS = (1024, 3072, 4096)


@dataclass(frozen=True)
class BlockPattern:
    """Which blocks attend to which.

    `whole_document`: random blocks are drawn from the whole document, also in BigBird's pattern.

    Raises:
        ValueError: an even window.
    """

    prefix: ClassVar = "sparse_"
    block: int = option(64, "tokens of a block", least=1)
    window: int = option(3, "blocks of the window around each block, itself included", least=1)
    random: int = option(3, "random blocks", least=0)
    first: int = option(1, "global blocks at the beginning of a document", least=0)
    last: int = option(1, "global blocks at the end", least=0)
    whole_document: bool = False

    def __post_init__(self) -> None:
        if self.window % 2 == 0:
            raise ValueError(f"--sparse-window {self.window}: it must be odd, with the block itself in the middle")

    @property
    def dense(self) -> int:
        """A document of at most this many blocks has full attention: 11 with the defaults, which are BigBird's."""
        return self.first + self.window + self.last + 2 * self.random

    @property
    def published(self) -> bool:
        """Whether the published code says which random blocks are drawn."""
        return not self.whole_document and (self.window, self.first, self.last) == (3, 1, 1)

    def special(self, num_blocks: int) -> bool:
        """Whether a document has one of `SPECIAL_LENGTHS`, and the first 1,024 tokens have enough blocks to draw."""
        return num_blocks * self.block in SPECIAL_LENGTHS and SPECIAL_LENGTHS[0] // self.block >= self.random + 4


@lru_cache(maxsize=512)
def visible_blocks(pattern: BlockPattern, num_blocks: int, num_heads: int, seed: int) -> Tensor:
    """(H, N, K) numbers of the key blocks of each query block, each once; -1 for none.

    Only for more than `pattern.dense` blocks.
    """
    side = pattern.window // 2
    ends = [*range(pattern.first), *range(num_blocks - pattern.last, num_blocks)]
    table = np.full((num_heads, num_blocks, pattern.window + len(ends) + pattern.random), -1)
    drawn = _random_blocks(pattern, num_blocks, num_heads, np.random.RandomState(seed))
    for head, block in np.ndindex(num_heads, num_blocks):
        near = range(max(0, block - side), min(num_blocks, block + side + 1))
        blocks = [*dict.fromkeys([*near, *ends, *drawn.get((head, block), [])])]
        table[head, block, : len(blocks)] = blocks
    return torch.from_numpy(table)


def _random_blocks(
    pattern: BlockPattern, num_blocks: int, num_heads: int, random: np.random.RandomState
) -> dict[tuple[int, int], list[int]]:
    """The random blocks of each head and block of queries."""
    rows = candidates = range(pattern.first, num_blocks - pattern.last)
    if pattern.published and not pattern.special(num_blocks):
        return {(head, row): _early_blocks(pattern, row, random) for row in rows for head in range(num_heads)}
    if pattern.published:
        most, early = (length // pattern.block for length in (SPECIAL_LENGTHS[-1], SPECIAL_LENGTHS[0]))
        rows, candidates = range(1, most - 1), range(1, early)
    legal = {row: [n for n in candidates if abs(n - row) > pattern.window // 2] for row in rows}
    return {
        (head, row): random.permutation(legal[row]).tolist()[: pattern.random]
        for head in range(num_heads)
        for row in rows
    }


def _early_blocks(pattern: BlockPattern, row: int, random: np.random.RandomState) -> list[int]:
    """The published draw for a block of queries: from as many blocks as a document has that is too short for it."""
    end = pattern.dense
    illegal = {0, row - 1, row, row + 1, end - 1} | {1: {end - 2}, end - 2: {1}}.get(row, set())
    return [n for n in random.permutation(end).tolist() if n not in illegal][: pattern.random]


@dataclass(frozen=True)
class SparseRows:
    """The documents of a batch that are long enough for the pattern.

    Attributes:
        index: (B',) their rows.
        short: the other rows; None if there are none.
        blocks: the keys that each block of queries attends to.
        global_positions: (B', G) positions of the tokens of global blocks.
        real: mask of the (B', 1, 1, N L) keys that are tokens, as `kernels.attend` takes it.
    """

    index: Tensor
    short: Tensor | None
    blocks: KeyBlocks
    global_positions: Tensor
    real: Tensor


@dataclass(frozen=True)
class BlockSparse:
    """`--encoder-attention block-sparse`."""

    pattern: BlockPattern = BlockPattern()  # noqa: RUF009 - frozen
    width: Width = Width()  # noqa: RUF009 - frozen

    def check_length(self, longest: int) -> None:
        """Raises ValueError if a document of `longest` tokens has fewer blocks than the pattern names."""
        most = -(-longest // self.pattern.block)
        for name in ("window", "random"):
            if (number := getattr(self.pattern, name)) > most and number != getattr(BlockPattern, name):
                raise ValueError(
                    f"--sparse-{name} {number}: --max-positions {longest} is only {most} blocks of "
                    f"{self.pattern.block} tokens; give fewer, or --encoder-attention full"
                )

    def build(self, embed_dim: int, num_heads: int, dropout: float, layer: int = 0) -> nn.Module:
        return BlockSparseAttention(embed_dim, num_heads, dropout, self.pattern, layer, self.width.qkv_dim)


class BlockSparseAttention(HeadProjections):
    """Self-attention under a `BlockPattern`.

    Args:
        embed_dim, num_heads, dropout, inner_dim: of `HeadProjections`.
        pattern: the numbers of blocks.
        seed: of the random blocks; the published code takes the number of the layer.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        pattern: BlockPattern = BlockPattern(),  # noqa: B008, it is frozen
        seed: int = 0,
        inner_dim: int | None = None,
    ) -> None:
        super().__init__(embed_dim, num_heads, dropout, inner_dim)
        self.pattern, self.seed = pattern, seed

    def allowed(self, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
        """(B, H, ...): as in `FullAttention`, for each head; without padding a document ends with the last key."""
        length = int(max(query.max(), key.max())) + 1
        lengths = [length] if layout.padding is None else (~layout.padding).sum(dim=1).tolist()
        return torch.stack([self._allowed(query, key, int(length)) for length in lengths])

    def _allowed(self, query: Tensor, key: Tensor, length: int) -> Tensor:
        pattern, num_blocks = self.pattern, -(-length // self.pattern.block)
        query, key = torch.broadcast_tensors(query // pattern.block, key // pattern.block)
        inside = (query < num_blocks) & (key < num_blocks)
        if num_blocks <= pattern.dense:
            return inside.expand(self.num_heads, *inside.shape)
        table = visible_blocks(pattern, num_blocks, self.num_heads, self.seed)
        seen = torch.zeros(self.num_heads, num_blocks, num_blocks + 1, dtype=torch.bool)  # the last column: no block
        seen.scatter_(2, table % (num_blocks + 1), True)
        seen[:, : pattern.first] = seen[:, num_blocks - pattern.last :] = True
        return inside & seen[:, query.clamp(max=num_blocks - 1), key.clamp(max=num_blocks - 1)]

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        long = self._long_rows(x, layout)
        if long is None:
            return self.attend_rows(x, layout.key_mask(x))
        keys, values = self.keys_and_values(x)
        queries = self.heads(self.q_proj(x)).to(keys.dtype)
        if long.short is None:
            return self.merge(self._sparse(queries, keys, values, long))
        sparse = self._sparse(queries[long.index], keys[long.index], values[long.index], long)
        mask, end = layout.key_mask(x), self.pattern.dense * self.pattern.block
        assert mask is not None
        q, k, v = (states[long.short, :, :end] for states in (queries, keys, values))
        dense = attend(q, k, v, mask.allowed[long.short, ..., :end], self.dropout_rate, self_attention=True)
        dense = F.pad(dense, (0, 0, 0, x.size(1) - end))
        out = keys.new_zeros(queries.shape).index_copy(0, long.index, sparse).index_copy(0, long.short, dense)
        return self.merge(out)

    def _sparse(self, queries: Tensor, keys: Tensor, values: Tensor, rows: SparseRows) -> Tensor:
        """(B', H, T, E) of the long rows -> (B', H, T, E)."""
        length, block = queries.size(2), self.pattern.block
        queries, keys, values = (F.pad(x, (0, 0, 0, -length % block)) for x in (queries, keys, values))
        q, k, v = (x.unflatten(2, (-1, block)) for x in (queries, keys, values))
        out = attend_blocks(q, k, v, rows.blocks, self.dropout_rate).flatten(2, 3)
        if rows.global_positions.size(1):
            where = rows.global_positions[:, None, :, None].expand(-1, self.num_heads, -1, out.size(-1))
            everything = attend(queries.gather(2, where), keys, values, rows.real, self.dropout_rate)
            out = out.scatter(2, where, everything)
        return out[:, :, :length]

    def _long_rows(self, x: Tensor, layout: BatchLayout) -> SparseRows | None:
        """The rows to which the pattern applies; None if there are none."""
        if x.size(1) <= self.pattern.dense * self.pattern.block:
            return None
        key = ("block-sparse", x.size(1), x.dtype, self.pattern, self.num_heads, self.seed)
        return layout.cached(key, lambda: self._rows(x, layout))

    def _rows(self, x: Tensor, layout: BatchLayout) -> SparseRows | None:
        block, pattern = self.pattern.block, self.pattern
        lengths = layout.lengths(x)
        is_long = [-(-length // block) > pattern.dense for length in lengths]
        if not any(is_long):
            return None
        counts = [-(-length // block) for length, long in zip(lengths, is_long, strict=True) if long]
        most = -(-x.size(1) // block)
        tables = [visible_blocks(pattern, count, self.num_heads, self.seed) for count in counts]
        table = torch.stack([F.pad(t, (0, 0, 0, most - t.size(1)), value=-1) for t in tables]).to(x.device)
        ends = [
            [*range(pattern.first * block), *range((count - pattern.last) * block, count * block)] for count in counts
        ]
        long, short = (
            torch.tensor([row for row, long in enumerate(is_long) if long is wanted], device=x.device)
            for wanted in (True, False)
        )
        real = torch.arange(most * block, device=x.device) < torch.tensor(lengths, device=x.device)[long, None]
        return SparseRows(
            long,
            None if all(is_long) else short,
            key_blocks(table, real.unflatten(1, (most, block)), x.dtype),
            torch.tensor(ends, device=x.device, dtype=torch.long),
            prepare_mask(real[:, None, None], x.dtype),
        )
