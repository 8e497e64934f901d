"""Two-level attention: a sliding window, and on its output a wider window of pooled keys.

Zhang et al. 2021 (Poolingformer), section 2.2. The first level gives y (`SlidingWindowAttention`). The second level
projects y again (equation 5), pools keys and values (equations 6 and 7), attends to the pooled keys in a window w2
(equation 8) and gives z. The output is the output projection of y + z. O(T (w + w2 / stride)) operations.

The paper pools the window of each token by itself, which repeats nearly all of the work for the next token. Here the
document is pooled once. Token i attends to cell j, the tokens from j stride to j stride + kernel - 1, if the cell is
inside i - w2 .. i + w2. For tokens with i <= w2 or i - w2 a multiple of the stride this is the paper's definition
(`kernels.naive.pooled_window_attention`). The cells of other tokens begin up to stride - 1 tokens later.

Legend: B documents, T tokens, C channels, N blocks of L queries with W cells each, M cells, K tokens of a cell.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..kernels import Linear, Windows, attend_windows, naive, prepare_mask
from .batch_layout import BatchLayout
from .pooling import Pooling, cells_of
from .sliding_window import BLOCK, SlidingWindowAttention, merged

VARIANTS = ("mix", "share-weights")


@dataclass(frozen=True)
class SecondLevel:
    """Hyperparameters of the second level.

    Attributes:
        window: w2.
        kernel: tokens of a cell.
        stride: tokens from one cell to the next.
        pooling: one of `pooling.POOLINGS`.
        variant: None; `mix`, project the layer's input instead of y; or `share-weights`, use the projections of the
            first level (the last two rows of Table 6).
    Raises:
        ValueError: unknown variant, or a window that is too short for a cell.
    """

    window: int = 512
    kernel: int = 5
    stride: int = 4
    pooling: str = "ldconv"
    variant: str | None = None

    def __post_init__(self) -> None:
        if self.variant not in (None, *VARIANTS):
            raise ValueError(f"unknown variant {self.variant!r} of pooling; choose one of {', '.join(VARIANTS)}")
        if self.window < (least := max(self.kernel, self.stride) - 1):
            raise ValueError(
                f"pooling window {self.window}: with kernel {self.kernel} and stride {self.stride} it must be at least "
                f"{least}, so that it contains a cell"
            )


class PooledLevel(nn.Module):
    """Projections and poolings of the second level; with `share-weights` poolings only."""

    def __init__(self, embed_dim: int, num_heads: int, level: SecondLevel) -> None:
        super().__init__()
        if level.variant != "share-weights":
            self.k_proj, self.v_proj, self.q_proj = (Linear(embed_dim, embed_dim) for _ in range(3))
            for projection in (self.q_proj, self.k_proj, self.v_proj):
                nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        sizes = level.pooling, level.kernel, level.stride, num_heads, embed_dim // num_heads
        self.key_pooling, self.value_pooling = Pooling(*sizes), Pooling(*sizes)


class PoolingAttention(SlidingWindowAttention):
    """Sliding window attention and pooling attention on top of it.

    Args:
        embed_dim, num_heads, dropout, window: of `SlidingWindowAttention`.
        level: hyperparameters of the second level.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        window: int = 128,
        level: SecondLevel = SecondLevel(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(embed_dim, num_heads, dropout, window)
        self.pooled = PooledLevel(embed_dim, num_heads, level)
        self.level = level
        cells = -(-BLOCK // level.stride)  # of a block
        before = level.window // level.stride
        after = (cells * level.stride + level.window - level.kernel) // level.stride
        self.cell_windows = Windows(cells * level.stride, cells, before, before + after + 1)

    def sees(self, query: Tensor, cell: Tensor) -> Tensor:
        """Whether positions `query` have the cells of the given numbers in their second window."""
        first = cell * self.level.stride
        return (first >= query - self.level.window) & (first + self.level.kernel - 1 <= query + self.level.window)

    def allowed(self, query: Tensor, key: Tensor, layout: BatchLayout) -> Tensor:
        """The first level, and the tokens of the cells that the second level sees; see `FullAttention.allowed`."""
        kernel, stride, window = self.level.kernel, self.level.stride, self.level.window
        # Cells with the key: from ceil((key - kernel + 1) / stride) to key // stride; cells of the query likewise.
        lowest = torch.maximum((key - kernel + stride) // stride, -((window - query) // stride))
        highest = torch.minimum(key // stride, (query + window - kernel + 1) // stride)
        return super().allowed(query, key, layout) | (lowest.clamp(min=0) <= highest)

    def merged_heads(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) -> (B, T, C), y + z before the output projection."""
        y = super().merged_heads(x, layout)
        return y + self._second_level(x if self.level.variant == "mix" else y, layout)

    def _second_level(self, x: Tensor, layout: BatchLayout) -> Tensor:
        projections = self if self.level.variant == "share-weights" else self.pooled
        real, mask = layout.cached(
            ("cells", x.dtype, x.size(1), self.cell_windows, self.level), lambda: self._cells(x, layout)
        )
        keys = self.pooled.key_pooling(self.heads(projections.k_proj(x)), real)
        values = self.pooled.value_pooling(self.heads(projections.v_proj(x)), real)
        queries = self.heads(projections.q_proj(x))
        return merged(attend_windows(queries, keys, values, mask, self.cell_windows, self.dropout_rate))

    def weights(self, x: Tensor, layout: BatchLayout, first_query_only: bool = False) -> Tensor:
        """(B, H, T, M) weights of the second level, which attends to M cells; O(T M) memory, for analysis."""
        y = x if self.level.variant == "mix" else super().merged_heads(x, layout)
        projections = self if self.level.variant == "share-weights" else self.pooled
        real, _ = self._cells(x, layout)
        keys = self.pooled.key_pooling(self.heads(projections.k_proj(y)), real)
        tokens, cells = torch.arange(x.size(1), device=x.device)[:, None], torch.arange(keys.size(2), device=x.device)
        filled = real.any(dim=-1)[:, None, None]
        allowed = (self.sees(tokens, cells) & filled) | (tokens // self.level.stride == cells)
        found = naive.attention(self.heads(projections.q_proj(y)), keys, keys, allowed)[1]
        return found[:, :, :1] if first_query_only else found

    def middle_tokens(self, num_cells: int) -> Tensor:
        """(M,) position of the token in the middle of each cell."""
        return torch.arange(num_cells) * self.level.stride + self.level.kernel // 2

    def _cells(self, x: Tensor, layout: BatchLayout) -> tuple[Tensor, Tensor]:
        """(B or 1, M, K) real tokens of the cells, and the (B N, 1, L, W) mask of the blocks."""
        length, windows, level = x.size(1), self.cell_windows, self.level
        num_cells = windows.num_blocks(length) * windows.step
        tokens = x.new_ones(1, length, dtype=torch.bool) if layout.padding is None else ~layout.padding
        real = cells_of(tokens, num_cells, level.kernel, level.stride)
        queries = windows.queries(length, x.device).unsqueeze(-1)
        cells = windows.keys(length, x.device).unsqueeze(1)
        filled = real.any(dim=-1)[:, cells.clamp(0, num_cells - 1)] & (cells >= 0) & (cells < num_cells)
        # The cell of the token itself is always allowed: a softmax over no key is NaN.
        allowed = (self.sees(queries, cells) & filled) | (queries // level.stride == cells)
        allowed = allowed.expand(len(x), -1, -1, -1)
        return real, prepare_mask(allowed.flatten(0, 1).unsqueeze(1), x.dtype)
