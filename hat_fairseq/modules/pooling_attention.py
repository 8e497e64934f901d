"""Two-level attention: a sliding window, and on its output a wider window of pooled keys.

Zhang et al. 2021 (Poolingformer), section 2.2. The first level gives y (`SlidingWindowAttention`). The second level
projects y again (equation 5), pools keys and values (equations 6 and 7), attends to the pooled keys in a window w2
(equation 8) and gives z. The output is the output projection of y + z. O(T (w + w2 / stride)) operations.

The second window of token i holds cells of neighbouring tokens. They begin at i - w2 (at 0 if that is negative), and
every `stride` tokens from there. The document is pooled with stride 1. A phase is the tokens and cells whose positions,
counted from i - w2, have the same remainder modulo the stride. In a phase the second level is a sliding window over
cells. Rotary positions turn queries and keys of the first level alone: the paper says of no position of a pooled key.

Legend: B documents, T tokens, C channels, N blocks of L queries with W cells each, M cells, K tokens of a cell.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..kernels import Linear, Windows, attend_windows, naive, prepare_mask
from ..options import OptionError, option, stated, unstated
from .attention import AttentionSizes, HeadProjections, join_heads
from .batch_layout import BatchLayout
from .pooling import CELL_POOLINGS, Pooling, cells_of
from .sliding_window import CHUNK, WINDOW, SlidingWindowAttention

VARIANTS = ("mix", "share-weights")


@dataclass(frozen=True)
class SecondLevel:
    """The second level; the flags `--pooling-*` and `--key-pooling` say what the fields are."""

    window: int = 512
    kernel: int = 5
    stride: int = 4
    pooling: str = "ldconv"
    variant: str | None = None

    def __post_init__(self) -> None:
        if self.window < (least := max(self.kernel, self.stride) - 1):
            text = "{pooling_window}: with {pooling_kernel} and {pooling_stride} it must be at least {}, so that it "
            sizes = {"pooling_window": self.window, "pooling_kernel": self.kernel, "pooling_stride": self.stride}
            raise OptionError(f"{text}contains a cell", least, **sizes)


@dataclass
class PoolingFlags:
    """The flags of the second level of `--encoder-attention pooling`."""

    pooling_window: int | None = unstated(
        SecondLevel.window, "pooling: the number of tokens on either side whose pooled keys a token attends to", least=1
    )
    pooling_kernel: int | None = unstated(
        SecondLevel.kernel, "pooling: the number of tokens that are pooled to one key", least=1
    )
    pooling_stride: int | None = unstated(
        SecondLevel.stride, "pooling: the number of tokens from one pooled key to the next", least=1
    )
    key_pooling: str | None = unstated(
        SecondLevel.pooling, "pooling: pool keys and values in this way", choices=CELL_POOLINGS
    )
    # The last two rows of Table 6.
    pooling_variant: str | None = option(
        None,
        "pooling: let the second level read the layer's input (mix), or share the first level's projections",
        choices=VARIANTS,
    )

    def second_level(self) -> SecondLevel:
        """Returns the second level; ValueError for flags that contradict each other."""
        sizes = stated(window=self.pooling_window, kernel=self.pooling_kernel, stride=self.pooling_stride)
        return SecondLevel(**sizes, **stated(pooling=self.key_pooling, variant=self.pooling_variant))


class Phase(NamedTuple):
    """Tokens that attend to one sequence of cells, these cells, and the windows of the tokens over them.

    With w2 = 4 and stride 2, tokens 0 to 3 have the cells 0, 2, 4, 6; tokens 4, 6, 8, ... the cells 0, 2, 4, ..., and
    tokens 5, 7, 9, ... the cells 1, 3, 5, ...
    """

    tokens: range
    cells: range
    windows: Windows


class PooledLevel(nn.Module):
    """Projections and poolings of the second level; with `share-weights` poolings only."""

    def __init__(self, embed_dim: int, num_heads: int, level: SecondLevel) -> None:
        super().__init__()
        if level.variant != "share-weights":
            self.k_proj, self.v_proj, self.q_proj = (Linear(embed_dim, embed_dim) for _ in range(3))
        sizes = level.pooling, level.kernel, num_heads, embed_dim // num_heads
        self.key_pooling, self.value_pooling = Pooling(*sizes), Pooling(*sizes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises the projections as those of the first level."""
        for name in ("q_proj", "k_proj", "v_proj"):
            if hasattr(self, name):
                nn.init.xavier_uniform_(getattr(self, name).weight, gain=2**-0.5)


class PoolingAttention(SlidingWindowAttention):
    """Sliding window attention and pooling attention on top of it."""

    def __init__(
        self,
        sizes: AttentionSizes,
        window: int = WINDOW,
        level: SecondLevel = SecondLevel(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__(sizes, window)
        self.pooled = PooledLevel(sizes.embed_dim, sizes.num_heads, level)
        self.level, self.reach = level, window + level.window
        others = (2 * level.window - level.kernel + 1) // level.stride  # cells of a window after the first
        chunk = min(CHUNK, max(32, others))  # queries of a phase, as on the first level
        self.cell_windows = Windows(chunk, chunk, 0, chunk + others)

    def first_cell(self, query: Tensor) -> Tensor:
        """Returns where the first cell of positions `query` begins; from there one begins every `stride` tokens."""
        return (query - self.level.window).clamp(min=0)

    def sees(self, query: Tensor, first: Tensor) -> Tensor:
        """Returns whether positions `query` have the cells that begin at positions `first` in their second window."""
        after = first - self.first_cell(query)
        last = first + self.level.kernel - 1
        return (after >= 0) & (after % self.level.stride == 0) & (last <= query + self.level.window)

    def output_of_heads(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C), y + z before the output projection."""
        y = super().output_of_heads(x, layout)
        return y + self._second_level(x if self.level.variant == "mix" else y, layout)

    @property
    def projections(self) -> HeadProjections | PooledLevel:
        """Returns the module with the projections of the second level."""
        return self if self.level.variant == "share-weights" else self.pooled

    def _second_level(self, x: Tensor, layout: BatchLayout) -> Tensor:
        key = ("cells", x.dtype, x.size(1), self.cell_windows, self.level)
        real, masks = layout.cached(key, lambda: self._cells(x, layout))
        keys = self.pooled.key_pooling(self.every_head(self.heads(self.projections.k_proj(x))), real)
        values = self.pooled.value_pooling(self.every_head(self.heads(self.projections.v_proj(x))), real)
        queries = self.heads(self.projections.q_proj(x))
        out = torch.empty_like(queries)
        for phase, mask in zip(self._phases(x.size(1), keys.size(2)), masks, strict=True):
            tokens, cells = (slice(each.start, each.stop, each.step) for each in phase[:2])
            states = queries[:, :, tokens], keys[:, :, cells], values[:, :, cells]
            out[:, :, tokens] = attend_windows(*states, mask, phase.windows, self.dropout_rate)
        return join_heads(out)

    def _phases(self, length: int, num_cells: int) -> list[Phase]:
        """The first w2 tokens, whose cells begin at 0, then the phases of the other ones."""
        window, stride, windows = self.level.window, self.level.stride, self.cell_windows
        tokens, cells = range(min(window, length)), range(0, min(2 * window, num_cells), stride)
        phases = [Phase(tokens, cells, Windows(len(tokens), len(cells), 0, len(cells)))]
        if length > window:  # token w2 + i sees the cells from i on
            number = num_cells // stride
            windows = windows if number > windows.size else Windows(number, number, 0, number)
            phases += [
                Phase(range(window + i, length, stride), range(i, num_cells, stride), windows) for i in range(stride)
            ]
        return phases

    def weights(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Returns (B, H, T, M) weights of the second level, which attends to M cells; O(T M) memory, for analysis."""
        y = x if self.level.variant == "mix" else super().output_of_heads(x, layout)
        real, _ = self._cells(x, layout)
        keys = self.pooled.key_pooling(self.every_head(self.heads(self.projections.k_proj(y))), real)
        tokens = torch.arange(x.size(1), device=x.device)[:, None]
        allowed = self._allowed_cells(tokens, torch.arange(keys.size(2), device=x.device)[None], real)
        return naive.attention(self.heads(self.projections.q_proj(y)), keys, keys, allowed.unsqueeze(1))[1]

    def middle_tokens(self, num_cells: int) -> Tensor:
        """Returns (M,) position of the token in the middle of each cell."""
        return torch.arange(num_cells) + self.level.kernel // 2

    def _cells(self, x: Tensor, layout: BatchLayout) -> tuple[Tensor, list[Tensor]]:
        """(B or 1, M, K) real tokens of the cells, and for each of the `_phases` the mask of `attend_windows`."""
        length, level = x.size(1), self.level
        num_cells = -(-length // level.stride) * level.stride
        real = x.new_ones(1, length, dtype=torch.bool) if layout.padding is None else ~layout.padding
        real, masks = cells_of(real, num_cells, level.kernel), []
        for tokens, cells, windows in self._phases(length, num_cells):
            queries, keys = windows.positions(len(tokens), len(cells), x.device)
            queries, keys = tokens.start + tokens.step * queries, cells.start + cells.step * keys
            mask = self._allowed_cells(queries, keys, real).expand(len(x), -1, -1, -1)
            masks.append(prepare_mask(mask.flatten(0, 1).unsqueeze(1), x.dtype))
        return real, masks

    def _allowed_cells(self, query: Tensor, cell: Tensor, real: Tensor) -> Tensor:
        """Whether positions `query` attend to these cells, (B or 1, ...)."""
        num_cells = real.size(1)
        filled = real.any(dim=-1)[:, cell.clamp(0, num_cells - 1)] & (cell >= 0) & (cell < num_cells)
        # The first cell is always allowed: a softmax over no key is NaN.
        return (self.sees(query, cell) & filled) | (cell == self.first_cell(query))
