"""Dense, obvious versions of what the package computes cleverly: loops over documents, heads and sentences."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def attention(module: nn.Module, query: Tensor, memory: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """One document: (T, C) queries, (K, C) memory, (T, K) or (1 or H, T, K) allowed -> (T, C), (H, T, K) weights."""
    heads, weights = attention_heads(module, query, memory, allowed)
    return module.out_proj(heads), weights


def attention_heads(module: nn.Module, query: Tensor, memory: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """As `attention`, before the output projection."""
    head_dim = module.embed_dim // module.num_heads
    q, k, v = module.q_proj(query), module.k_proj(memory), module.v_proj(memory)
    if module.rotary is not None:
        q, k = (torch.cat([turned(x, module.rotary) for x in each.split(head_dim, dim=-1)], dim=-1) for each in (q, k))
    heads, weights = [], []
    allowed = allowed.expand(module.num_heads, *allowed.shape[-2:])
    for head in range(module.num_heads):
        part = slice(head * head_dim, (head + 1) * head_dim)
        first = head * module.kv_heads // module.num_heads * head_dim  # of its keys and values
        of_keys = slice(first, first + head_dim)
        scores = q[:, part] @ k[:, of_keys].T / head_dim**0.5
        scores = torch.where(allowed[head], scores, torch.full_like(scores, float("-inf")))
        weights.append(scores.softmax(-1))
        heads.append(weights[-1] @ v[:, of_keys])
    return torch.cat(heads, dim=-1), torch.stack(weights)


def turned(x: Tensor, theta: float, factor: float = 1.0) -> Tensor:
    """One head, (T, E): pairs of channels as complex numbers, times e^(i angle); Su et al. 2021, equation 14."""
    half = x.size(1) // 2
    pairs = torch.complex(*x.double().split(half, dim=1))
    angles = torch.tensor(
        [[t / factor * theta ** (-2 * i / x.size(1)) for i in range(half)] for t in range(len(x))]
    ).reshape(len(x), half)
    out = pairs * torch.polar(torch.ones(len(x), half, dtype=torch.double), angles.double())
    return torch.cat([out.real, out.imag], dim=1).to(x)


def every_head(module: nn.Module, x: Tensor) -> Tensor:
    """Keys or values, (T, N E) -> (T, H E)."""
    head_dim = module.embed_dim // module.num_heads
    return torch.cat(
        [x.split(head_dim, dim=1)[h * module.kv_heads // module.num_heads] for h in range(module.num_heads)], 1
    )


def two_level_attention(module: nn.Module, x: Tensor, allowed: Tensor, sees: Tensor) -> Tensor:
    """One document: (T, C) states, (T, T) tokens of the first level and (T, T) cells of the second -> (T, C).

    Cell t is the tokens from t on.
    """
    level, head_dim = module.level, module.embed_dim // module.num_heads
    shared = module if level.variant == "share-weights" else module.pooled
    y, _ = attention_heads(module, x, x, allowed)
    base = x if level.variant == "mix" else y
    q, k, v = shared.q_proj(base), shared.k_proj(base), shared.v_proj(base)
    if shared is module:
        k, v = every_head(module, k), every_head(module, v)
    cells = [slice(first, first + level.kernel) for first in range(len(x))]
    heads = []
    for head in range(module.num_heads):
        part = slice(head * head_dim, (head + 1) * head_dim)
        keys = torch.stack([pooled_cell(module.pooled.key_pooling, k[cell, part], head) for cell in cells])
        values = torch.stack([pooled_cell(module.pooled.value_pooling, v[cell, part], head) for cell in cells])
        scores = q[:, part] @ keys.T / head_dim**0.5
        weights = scores.masked_fill(~sees[:, : len(cells)], float("-inf")).softmax(-1)
        heads.append(weights @ values)
    return module.out_proj(y + torch.cat(heads, dim=-1))


def pooled_cell(pooling: nn.Module, states: Tensor, head: int) -> Tensor:
    """The (k, E) states of a cell, of a head -> (E,)."""
    if pooling.name == "max":
        return states.amax(dim=0)
    if pooling.name == "mean":
        return states.mean(dim=0)
    middle = pooling.kernel // 2
    context = states.mean(dim=0) if pooling.name == "mean-ldconv" else states[middle if middle < len(states) else 0]
    return (pooling.weight[head, : len(states)] @ context).softmax(0) @ states


def pooled_window_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    window: int,
    kernel: int,
    stride: int,
    pool_keys: Callable[[Tensor], Tensor],
    pool_values: Callable[[Tensor], Tensor],
) -> Tensor:
    """Zhang et al. 2021, equations 6 to 8, to the letter: each query pools the keys and values of its own window.

    The cells of query i begin at i - window (at 0 if that is negative) and every `stride` tokens from there. A cell of
    `kernel` tokens belongs to the window if its last token does; at the end of the document it may be shorter.

    Args:
        queries, keys, values: (T, E), one head of one document.
        window: tokens on either side.
        pool_keys, pool_values: the (k, E) states of a cell -> (E,).
    Returns:
        (T, E).
    """
    rows = []
    for i, query in enumerate(queries):
        starts = range(max(0, i - window), min(i + window - kernel + 1, len(keys) - 1) + 1, stride)
        pooled = torch.stack([pool_keys(keys[start : start + kernel]) for start in starts])
        weights = (pooled @ query * len(query) ** -0.5).softmax(-1)
        rows.append(weights @ torch.stack([pool_values(values[start : start + kernel]) for start in starts]))
    return torch.stack(rows)


def residual(layer: nn.Module, x: Tensor, layer_norm: nn.Module, sublayer) -> Tensor:
    return x + sublayer(layer_norm(x)) if layer.sizes.normalize_before else layer_norm(x + sublayer(x))


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def feed_forward(layer: nn.Module, x: Tensor) -> Tensor:
    hidden, name = layer.fc1(x), layer.sizes.activation
    if name in ("geglu", "swiglu"):
        first, second = hidden.chunk(2, dim=-1)
        return layer.fc2((gelu(first) if name == "geglu" else first / (1 + torch.exp(-first))) * second)
    return layer.fc2({"relu": torch.relu, "gelu": gelu}[name](hidden))


def encoder_layer(layer: nn.Module, x: Tensor) -> Tensor:
    """One unpadded document, (T, C) -> (T, C)."""
    everything = torch.ones(len(x), len(x), dtype=torch.bool)
    x = residual(layer, x, layer.self_attn_layer_norm, lambda h: attention(layer.self_attn, h, h, everything)[0])
    return residual(layer, x, layer.final_layer_norm, lambda h: feed_forward(layer, h))


def hierarchical_encoder_layer(layer: nn.Module, x: Tensor, starts: list[int]) -> Tensor:
    """One unpadded document, (T, C) -> (T, C), its sentences starting at `starts`; relu. Query by query."""
    everything = torch.ones(len(x), len(x), dtype=torch.bool)
    x = residual(layer, x, layer.self_attn_layer_norm, lambda h: attention(layer.self_attn, h, h, everything)[0])
    # Keys go through the norm of a pre-norm layer as the queries do.
    memory = layer.sentence_attn_layer_norm(x) if layer.sizes.normalize_before else x
    memory, rows = torch.stack([memory[i] for i in starts]), []
    allowed = torch.ones(1, len(starts), dtype=torch.bool)
    for i, row in enumerate(x):
        if layer.queries == "tokens" or i in starts:
            sublayer = lambda h: attention(layer.sentence_attn, h, memory, allowed)[0]  # noqa: E731
            row = residual(layer, row[None], layer.sentence_attn_layer_norm, sublayer)[0]
        rows.append(row)
    return residual(layer, torch.stack(rows), layer.final_layer_norm, lambda h: feed_forward(layer, h))


def decoder_layer(layer: nn.Module, x: Tensor, tokens: Tensor, sentences: Tensor | None) -> Tensor:
    """One hypothesis of one unpadded document: (T, C) targets, (S, C) tokens, (N, C) sentences or None."""
    causal = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    x = residual(layer, x, layer.self_attn_layer_norm, lambda h: attention(layer.self_attn, h, h, causal)[0])
    memories = [(layer.encoder_attn, layer.encoder_attn_layer_norm, tokens)]
    if sentences is not None:
        memories.append((layer.sentence_attn, layer.sentence_attn_layer_norm, sentences))
    for module, layer_norm, memory in memories:
        allowed = torch.ones(len(x), len(memory), dtype=torch.bool)
        x = residual(layer, x, layer_norm, lambda h, m=module, s=memory, a=allowed: attention(m, h, s, a)[0])
    return residual(layer, x, layer.final_layer_norm, lambda h: feed_forward(layer, h))


def sentence_starts(tokens: list[int], bos: int, pad: int) -> list[int]:
    """Positions of the sentences of one padded row."""
    real = [i for i, token in enumerate(tokens) if token != pad]
    first = real[0] if real else 0
    return sorted({first} | {i for i, token in enumerate(tokens) if token == bos})


def hierarchical_encoder(module: nn.Module, x: Tensor, starts: list[int]) -> Tensor:
    """One document: (T, C) and the positions of its sentences -> (N, C)."""
    states = torch.stack([x[i] for i in starts])
    for layer in module.layers:
        states = encoder_layer(layer, states)
    return states if module.layer_norm is None else module.layer_norm(states)


def hierarchical_layer(layer: nn.Module, segments: list[Tensor], positions: Tensor | None) -> list[Tensor]:
    """One unpadded document: (L_n, C) states of each of its N segments, (N, C) positions of segments or None."""
    if layer.segment_wise is not None:
        segments = [encoder_layer(layer.segment_wise, segment) for segment in segments]
    if layer.cross_segment is not None:
        heads = torch.stack([segment[0] for segment in segments])
        heads = encoder_layer(layer.cross_segment, heads if positions is None else heads + positions)
        segments = [torch.cat([head[None], segment[1:]]) for head, segment in zip(heads, segments, strict=True)]
    return segments


def hierarchical_transformer(encoder: nn.Module, segments: list[Tensor]) -> list[Tensor]:
    """One document: the ids of each of its segments -> their (L_n, C) states.

    Padding (1) in a segment is attended to, at position 0, as by the code that the released weights were trained with.
    """
    states = []
    for ids in segments:
        slots = (torch.arange(len(ids)) + 2) * ids.ne(1)
        x = encoder.embed_tokens(ids) + encoder.embed_token_type.weight + encoder.embed_positions(slots)
        states.append(encoder.layernorm_embedding(x))
    table = encoder.segment_positions
    positions = None if table is None else table.weight[1 : len(segments) + 1]
    for layer in encoder.layers:
        states = hierarchical_layer(layer, states, positions)
    return states


def segments_at_markers(tokens: list[int], bos: int, pad: int, length: int) -> list[list[int]]:
    """A padded row's positions, by segment: a new one at each marker and when one is full."""
    segments: list[list[int]] = []
    for position, token in enumerate(tokens):
        if token == pad:
            continue
        if not segments or token == bos or len(segments[-1]) == length:
            segments.append([])
        segments[-1].append(position)
    return segments
