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

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..kernels import KeyBlocks, attend, attend_blocks, key_blocks, prepare_mask
from ..options import OptionError, stated, unstated
from .attention import AttentionSizes, HeadProjections
from .batch_layout import BatchLayout

# For these lengths the published code draws random blocks from the first 1,024 tokens, for each block of 4,096 tokens.
SPECIAL_LENGTHS = (1024, 3072, 4096)
# That are kept, one for each layer and number of blocks, so that a training draws each once: of 12 layers for documents
# of up to 350 blocks, of 24 layers for up to 180. A table of 64 blocks and 12 heads has 24 kB.
TABLES = 4096


@dataclass(frozen=True)
class BlockPattern:
    """Which blocks attend to which; the flags `--sparse-*` say what the fields are.

    `whole_document`: random blocks are drawn from the whole document, also in BigBird's pattern.

    Raises:
        ValueError: an even window.
    """

    block: int = 64
    window: int = 3
    random: int = 3
    first: int = 1
    last: int = 1
    whole_document: bool = False

    def __post_init__(self) -> None:
        if self.window % 2 == 0:
            text = "{sparse_window}: it must be odd, with the block itself in the middle"
            raise OptionError(text, sparse_window=self.window)

    def check_length(self, longest: int) -> None:
        """Raises ValueError if a document of `longest` tokens has fewer blocks than an option, not a default, names."""
        most = -(-longest // self.block)
        for name in ("window", "random"):
            if (number := getattr(self, name)) > most and number != getattr(BlockPattern, name):
                text = f"{{sparse_{name}}}: {{max_positions}} is only {most} blocks of {self.block} tokens; give "
                names = {f"sparse_{name}": number, "max_positions": longest, "encoder_attention": "full"}
                raise OptionError(f"{text}fewer, or {{encoder_attention}}", **names)

    @property
    def dense(self) -> int:
        """Counts the blocks up to which a document has full attention: 11 with the defaults, which are BigBird's."""
        return self.first + self.window + self.last + 2 * self.random

    @property
    def published(self) -> bool:
        """Returns whether the published code says which random blocks are drawn."""
        return not self.whole_document and (self.window, self.first, self.last) == (3, 1, 1)

    def special(self, num_blocks: int) -> bool:
        """Returns whether the length is in `SPECIAL_LENGTHS`, and the first 1,024 tokens have enough blocks to draw."""
        return num_blocks * self.block in SPECIAL_LENGTHS and SPECIAL_LENGTHS[0] // self.block >= self.random + 4


@dataclass
class SparseFlags:
    """The flags of `--encoder-attention block-sparse`."""

    sparse_block: int | None = unstated(BlockPattern.block, "block-sparse: the number of tokens of a block", least=1)
    sparse_window: int | None = unstated(
        BlockPattern.window,
        "block-sparse: the number of blocks in the window around each block, itself included",
        least=1,
    )
    sparse_random: int | None = unstated(
        BlockPattern.random,
        "block-sparse: the number of blocks drawn at random that each block attends to beside its window",
        least=0,
    )
    sparse_first: int | None = unstated(
        BlockPattern.first,
        "block-sparse: the number of global blocks at the beginning; they attend to all blocks, and all attend to them",
        least=0,
    )
    sparse_last: int | None = unstated(
        BlockPattern.last, "block-sparse: the number of global blocks at the end of a document", least=0
    )

    def block_pattern(self) -> BlockPattern:
        """Returns the pattern; ValueError for an even window."""
        sizes = stated(block=self.sparse_block, window=self.sparse_window, random=self.sparse_random)
        return BlockPattern(**sizes, **stated(first=self.sparse_first, last=self.sparse_last))


@lru_cache(maxsize=TABLES)
def visible_blocks(pattern: BlockPattern, num_blocks: int, num_heads: int, seed: int) -> Tensor:
    """Returns (H, N, K) indices of the key blocks of each query block, each once; -1 for none; int32.

    Only for more than `pattern.dense` blocks.
    """
    side = pattern.window // 2
    ends = [*range(pattern.first), *range(num_blocks - pattern.last, num_blocks)]
    table = np.full((num_heads, num_blocks, pattern.window + len(ends) + pattern.random), -1, np.int32)
    drawn = _random_blocks(pattern, num_blocks, num_heads, np.random.RandomState(seed))
    for block in range(num_blocks):
        fixed = [*dict.fromkeys([*range(max(0, block - side), min(num_blocks, block + side + 1)), *ends])]
        table[:, block, : len(fixed)] = fixed
        for head in range(num_heads):
            blocks = [number for number in drawn.get((head, block), ()) if number not in fixed]
            table[head, block, len(fixed) : len(fixed) + len(blocks)] = blocks
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
    numbers = np.arange(candidates.start, candidates.stop)
    legal = {row: numbers[np.abs(numbers - row) > pattern.window // 2] for row in rows}
    return {
        (head, row): random.permutation(legal[row])[: pattern.random].tolist()
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
    """The pattern of a batch; a document that is too short for it sees all of its blocks.

    Attributes:
        blocks: the keys that each block of queries attends to.
        global_positions: (B, G) positions of the tokens of global blocks.
        real: mask of the (B, 1, 1, N L) keys that are tokens, as `kernels.attend` takes it.
        tail_padding: (B, 1, N L, 1) True = padding after the blocks of a short document, whose outputs become
            zero, as those of other padding; None: there is none.
    """

    blocks: KeyBlocks
    global_positions: Tensor
    real: Tensor
    tail_padding: Tensor | None


class BlockSparseAttention(HeadProjections):
    """Self-attention under a `BlockPattern`.

    `seed`: of the random blocks; the published code takes the number of the layer.
    """

    def __init__(
        self,
        sizes: AttentionSizes,
        pattern: BlockPattern = BlockPattern(),  # noqa: B008, it is frozen
        seed: int = 0,
    ) -> None:
        super().__init__(sizes)
        self.pattern, self.seed = pattern, seed

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C)."""
        length, block = x.size(1), self.pattern.block
        if length <= self.pattern.dense * block:
            return self.attend_rows(x, layout.key_mask(x), layout.positions)
        key = ("block-sparse", length, x.dtype, self.pattern, self.num_heads, self.seed)
        rows = layout.cached(key, lambda: self._rows(x, layout))
        queries, *shared = self.self_projections(x, layout.positions)
        keys, values = map(self.every_head, shared)
        queries, keys, values = (F.pad(states, (0, 0, 0, -length % block)) for states in (queries, keys, values))
        q, k, v = (states.unflatten(2, (-1, block)) for states in (queries, keys, values))
        out = attend_blocks(q, k, v, rows.blocks, self.dropout_rate).flatten(2, 3)
        if rows.global_positions.size(1):
            where = rows.global_positions[:, None, :, None].expand(-1, self.num_heads, -1, out.size(-1))
            everything = attend(queries.gather(2, where), keys, values, rows.real, self.dropout_rate)
            out = out.scatter(2, where, everything)
        out = out if rows.tail_padding is None else out.masked_fill(rows.tail_padding, 0)
        return self.merge(out[:, :, :length])

    def _rows(self, x: Tensor, layout: BatchLayout) -> SparseRows:
        block, dense, most = self.pattern.block, self.pattern.dense, -(-x.size(1) // self.pattern.block)
        lengths = layout.lengths(x)
        counts = [max(1, -(-length // block)) for length in lengths]  # a batch of nothing but padding has one
        tables, ends = zip(*(self._visible(count) for count in counts), strict=True)
        width = max(table.size(2) for table in tables)
        table = torch.stack([F.pad(t, (0, width - t.size(2), 0, most - t.size(1)), value=-1) for t in tables])
        positions = torch.arange(most * block, device=x.device)
        real = positions < torch.tensor(lengths, device=x.device)[:, None]
        if layout.padding is not None:
            real &= ~F.pad(layout.padding, (0, most * block - x.size(1)), value=True)
        blocks = key_blocks(table.to(x.device, torch.long), real.unflatten(1, (most, block)), x.dtype)
        real[:, 0] |= ~real.any(dim=1)  # a softmax over no key is NaN
        tail_padding = None
        if min(counts) <= dense:
            short = torch.tensor([count <= dense for count in counts], device=x.device)[:, None]
            tail_padding = (short & (positions >= dense * block))[:, None, :, None]
        global_positions = torch.tensor(ends, device=x.device, dtype=torch.long)
        return SparseRows(blocks, global_positions, prepare_mask(real[:, None, None], x.dtype), tail_padding)

    def _visible(self, count: int) -> tuple[Tensor, list[int]]:
        """`visible_blocks` of a document of `count` blocks, and the G positions of its global tokens.

        In a short document, where all tokens see all blocks, these are any positions.
        """
        pattern, block = self.pattern, self.pattern.block
        if count > pattern.dense:
            table, last = visible_blocks(pattern, count, self.num_heads, self.seed), count - pattern.last
        else:
            table, last = (
                torch.arange(count, dtype=torch.int32).expand(self.num_heads, pattern.dense, count),
                pattern.first,
            )
        return table, [*range(pattern.first * block), *range(last * block, (last + pattern.last) * block)]
