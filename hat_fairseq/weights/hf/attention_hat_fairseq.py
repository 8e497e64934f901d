"""The attentions of the models: full, segments, windows, BigBird's blocks, and Poolingformer's two levels.

Dense attention with masks, which computes the same as the fast kernels of hat_fairseq. Needs torch.

Legend: B documents, T source tokens, U target tokens, S sentences or representatives, C channels, H heads, E = C / H, M
cells of K tokens.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Batch:
    """Padding and special tokens of a batch, for the layers of an encoder.

    Attributes:
        real: (B, T) True = a token, no padding.
        is_global: (B, T) True = attends to all tokens and is attended to by all; None: there are none.
        positions, exists: (B, S) the positions of the representatives of sentences or blocks, and whether they exist.
    """

    real: Tensor
    is_global: Tensor | None = None
    positions: Tensor | None = None
    exists: Tensor | None = None

    def gather(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, S, C)."""
        return x.gather(1, self.positions.unsqueeze(-1).expand(-1, -1, x.size(-1)))

    def scatter(self, x: Tensor, states: Tensor) -> Tensor:
        """(B, T, C) states in which those of the representatives are the (B, S, C) `states`."""
        rows, slots = self.exists.nonzero(as_tuple=True)
        x = x.clone()
        x[rows, self.positions[rows, slots]] = states[rows, slots]
        return x


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017); with fewer heads of keys grouped (Ainslie et al. 2023)."""

    def __init__(
        self, channels: int, heads: int, dropout: float, inner: int | None = None, kv_heads: int | None = None
    ):
        super().__init__()
        inner = inner or channels
        self.head_dim, self.dropout = inner // heads, dropout
        of_keys = (kv_heads or heads) * self.head_dim
        self.q_proj, self.k_proj = nn.Linear(channels, inner), nn.Linear(channels, of_keys)
        self.v_proj, self.out_proj = nn.Linear(channels, of_keys), nn.Linear(inner, channels)

    def heads(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, H, T, E)."""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.heads(self.k_proj(memory)), self.heads(self.v_proj(memory))

    def merged(self, queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """(B, H, U, E), (B, H, T, E) and bool that broadcasts to (B, H, U, T) -> (B, U, C), before `out_proj`.

        Keys may have fewer heads, if `allowed` is the same for all queries: those of a group lie side by side.
        """
        dropout = self.dropout if self.training else 0.0
        grouped = queries.reshape(len(keys), keys.size(1), -1, keys.size(3))
        out = F.scaled_dot_product_attention(grouped, keys, values, allowed, dropout).reshape(queries.shape)
        return out.transpose(1, 2).flatten(2)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
        """(B, U, C) queries; (B, H, T, E) keys and values; `allowed`: bool, broadcast to (B, H, U, T)."""
        return self.out_proj(self.merged(self.heads(self.q_proj(query)), keys, values, allowed))

    def among(self, x: Tensor, allowed: Tensor, batch: Batch) -> Tensor:
        """Self-attention of (B, T, C)."""
        return self(x, *self.keys_and_values(x), allowed)


def allowed_keys(settings: SimpleNamespace, number: int | None, batch: Batch) -> Tensor:
    """(B, 1 or H, T, T) True = the query attends to the key, in layer `number` of an encoder (None: full attention)."""
    real, name = batch.real, "full"
    if number is not None:
        name = settings.encoder_attention
        if number not in chosen_layers(settings):
            name = "window" if name == "pooling" else "full"
    places = torch.arange(real.size(1), device=real.device)
    query, key = places[:, None], places[None]
    if name == "full":
        return real[:, None, None].expand(-1, -1, len(places), -1)
    if name == "block-sparse":
        near = torch.stack([block_sparse(settings, number, len(places), int(row.sum())) for row in real]).to(
            real.device
        )
    elif name == "segments":
        length = given(settings.segment_length, 128)
        near = (query // length == key // length)[None, None]
    elif name not in ("window", "pooling"):
        raise ValueError(f"encoder_attention {name!r}: unknown to this exported code")
    else:
        near = ((query - key).abs() <= given(settings.attention_window, 128))[None]
        if batch.is_global is not None:
            near = near | batch.is_global[:, :, None] | batch.is_global[:, None]
        near = near[:, None]
    return near & real[:, None, None] | (query == key)  # padding attends to itself: a softmax over no key is NaN


def given(value: int | None, default: int) -> int:
    return default if value is None else value


def chosen_layers(settings: SimpleNamespace) -> set[int]:
    """The layers with `encoder_attention`, `0,6-8`; None: all."""
    if settings.encoder_attention_layers is None:
        return set(range(settings.encoder_layers))
    ends = [part.split("-") for part in settings.encoder_attention_layers.split(",")]
    return {number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)}


def block_sparse(settings: SimpleNamespace, seed: int, size: int, length: int) -> Tensor:
    """(H, size, size) BigBird's blocks for a document of `length` tokens."""
    block, window = given(settings.sparse_block, 64), given(settings.sparse_window, 3)
    drawn, first, last = (
        given(getattr(settings, f"sparse_{x}"), n) for x, n in (("random", 3), ("first", 1), ("last", 1))
    )
    heads, count, dense = settings.encoder_attention_heads, -(-length // block), first + window + last + 2 * drawn
    inside = torch.arange(size) < count * block
    if count <= dense:
        return (inside[:, None] & inside).expand(heads, -1, -1)
    representatives = hasattr(settings, "representative_weights") and not settings.no_hierarchy
    if (window, first, last) == (3, 1, 1) and not representatives:
        numbers = published_blocks(np.random.RandomState(seed), heads, count, block, drawn)
    else:
        numbers = blocks_of_all(np.random.RandomState(seed), heads, range(first, count - last), window // 2, drawn)
    rows = torch.arange(count)
    seen = ((rows[:, None] - rows).abs() <= window // 2).repeat(heads, 1, 1)
    for (head, row), others in numbers.items():
        if row < count - last:
            seen[head, row, others] = True
    globals_ = [*range(first), *range(count - last, count)]
    seen[:, globals_] = seen[:, :, globals_] = True
    token_blocks = (torch.arange(size) // block).clamp(max=count - 1)
    return seen[:, token_blocks][:, :, token_blocks] & inside[:, None] & inside


def blocks_of_all(
    random: np.random.RandomState, heads: int, rows: range, side: int, drawn: int, columns: range | None = None
) -> dict[tuple[int, int], list[int]]:
    """The random blocks of each head and block: from `columns` (default: `rows`), but not within `side` blocks."""
    return {
        (head, row): random.permutation([n for n in columns or rows if abs(n - row) > side])[:drawn].tolist()
        for head in range(heads)
        for row in rows
    }


def published_blocks(
    random: np.random.RandomState, heads: int, count: int, block: int, drawn: int
) -> dict[tuple[int, int], list[int]]:
    """The random blocks of each head and block, as the published code of BigBird draws them."""
    if count * block in (1024, 3072, 4096) and 1024 // block >= drawn + 4:
        return blocks_of_all(random, heads, range(1, 4096 // block - 1), 1, drawn, range(1, 1024 // block))
    end, numbers = 2 * drawn + 5, {}
    for row in range(1, count - 1):
        illegal = {0, row - 1, row, row + 1, end - 1} | {1: {end - 2}, end - 2: {1}}.get(row, set())
        for head in range(heads):
            numbers[head, row] = [n for n in random.permutation(end).tolist() if n not in illegal][:drawn]
    return numbers


class Pooling(nn.Module):
    """Pools the states of a cell of tokens: mean, max, or weights from its middle token or its mean (LDConv)."""

    def __init__(self, name: str, kernel: int, heads: int, channels: int):
        super().__init__()
        self.name, self.kernel = name, kernel
        if "ldconv" in name:
            self.weight = nn.Parameter(torch.zeros(heads, kernel, channels // heads))

    def forward(self, cells: Tensor, real: Tensor) -> Tensor:
        """(B, H, M, K, E) states and (B, 1, M, K) True = a token -> (B, H, M, E); zeros for a cell without tokens."""
        if self.name == "max":
            lowest = cells.masked_fill(~real.unsqueeze(-1), torch.finfo(cells.dtype).min).amax(dim=3)
            return lowest.masked_fill(~real.any(dim=-1, keepdim=True), 0)
        weights = real.to(cells.dtype) / real.sum(dim=-1, keepdim=True).clamp(min=1)
        if "ldconv" in self.name:
            context = (weights.unsqueeze(-1) * cells).sum(dim=3)
            if self.name == "ldconv":
                middle = self.kernel // 2
                context = torch.where(real[..., middle, None], cells[:, :, :, middle], cells[:, :, :, 0])
            scores = (context @ self.weight.transpose(1, 2)).masked_fill(~real, -math.inf)
            weights = scores.softmax(dim=-1).masked_fill(~real, 0)
        return (weights.unsqueeze(-1) * cells).sum(dim=3)


class PoolingAttention(Attention):
    """Poolingformer's two levels: y of the window, and z of pooled keys in a wider window; the projection of y + z."""

    def __init__(self, channels: int, heads: int, dropout: float, settings: SimpleNamespace):
        super().__init__(channels, heads, dropout)
        self.window, self.stride = given(settings.pooling_window, 512), given(settings.pooling_stride, 4)
        self.kernel, self.variant = given(settings.pooling_kernel, 5), settings.pooling_variant
        self.own_cells = getattr(settings, "pooling_cells", None) == "token"  # those of each token's own window
        self.pooled = nn.Module()
        if self.variant != "share-weights":
            self.pooled.q_proj, self.pooled.k_proj = nn.Linear(channels, channels), nn.Linear(channels, channels)
            self.pooled.v_proj = nn.Linear(channels, channels)
        pooling = settings.key_pooling or "ldconv"
        self.pooled.key_pooling = Pooling(pooling, self.kernel, heads, channels)
        self.pooled.value_pooling = Pooling(pooling, self.kernel, heads, channels)

    def among(self, x: Tensor, allowed: Tensor, batch: Batch) -> Tensor:
        y = self.merged(self.heads(self.q_proj(x)), *self.keys_and_values(x), allowed)
        source, level = x if self.variant == "mix" else y, self if self.variant == "share-weights" else self.pooled
        places = torch.arange(x.size(1), device=x.device)
        first = torch.arange(0, x.size(1), 1 if self.own_cells else self.stride, device=x.device)  # of each cell
        members = first[:, None] + torch.arange(self.kernel, device=x.device)  # M x K
        inside = members.clamp(max=x.size(1) - 1)
        real = (batch.real[:, inside] & (members < x.size(1))).unsqueeze(1)
        keys = self.pooled.key_pooling(self.heads(level.k_proj(source))[:, :, inside], real)
        values = self.pooled.value_pooling(self.heads(level.v_proj(source))[:, :, inside], real)
        query = places[:, None]
        near = (first >= query - self.window) & (first + self.kernel - 1 <= query + self.window)
        always = query // self.stride == first // self.stride  # a cell of the window: a softmax over no key is NaN
        if self.own_cells:
            begin = (query - self.window).clamp(min=0)
            near, always = near & ((first - begin) % self.stride == 0), first == begin
        sees = near & real.any(dim=-1).unsqueeze(2) | always
        return self.out_proj(y + self.merged(self.heads(level.q_proj(source)), keys, values, sees))
