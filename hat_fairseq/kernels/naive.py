"""The definition of what every kernel computes: the reference of the tests. Analysis takes attention weights from it.

Legend: B rows, H heads, N heads of keys and values, T queries, S keys, E channels of a head, V symbols.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


def activated(x: Tensor, activation: str | None) -> Tensor:
    """activation(x), or `x` where that is None."""
    return x if activation is None else ACTIVATIONS[activation](x)


def wide(x: Tensor) -> Tensor:
    """`x` in fp32, or in fp64 if it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    keep: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Vaswani et al. 2017, section 3.2.1: softmax(queries keys^T / sqrt(E)) values, with a softmax in fp32 or wider.

    Args:
        queries, keys, values: (B, H, T, E), (B, N, S, E) and (B, N, S, E); H / N heads of queries share one of keys.
        mask: bool (True = may attend) or added to the scores; broadcastable to (B, H, T, S).
        dropout: probability of dropping a weight.
        causal: query t attends to keys up to t.
        keep: (B, H, T, S) bool, the weights that dropout keeps; None draws them.
    Returns:
        (B, H, T, E) output, and (B, H, T, S) weights before dropout.
    """
    if (group := queries.size(1) // keys.size(1)) > 1:
        keys, values = (x.repeat_interleave(group, dim=1) for x in (keys, values))
    scores = queries @ keys.transpose(-2, -1) * queries.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype is torch.bool else scores + mask
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), float("-inf"))
    weights = wide(scores).softmax(-1).to(scores)
    dropped = F.dropout(weights, dropout) if keep is None else weights * keep / (1 - dropout)
    return dropped @ values, weights


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


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """activation(x weight^T + bias)."""
    return activated(F.linear(x, weight, bias), activation)


def int8_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """`linear` with x rounded to multiples of 1/254 of each row's range (0 included), weights to 1/127 of a maximum."""
    steps = (x.amax(-1, keepdim=True).clamp(min=0) - x.amin(-1, keepdim=True).clamp(max=0)).clamp(min=1e-35) / 254
    weight_steps = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return linear((x / steps).round() * steps, (weight / weight_steps).round() * weight_steps, bias, activation)


def label_smoothed_loss(
    features: Tensor, weight: Tensor, target: Tensor, smoothing: float, pad: int
) -> tuple[Tensor, Tensor]:
    """Label-smoothed cross-entropy and negative log-likelihood, summed over the positions whose target is not `pad`.

    Szegedy et al. 2016, section 7, as fairseq does it: the share `smoothing` is spread over the V - 1 wrong symbols.
    """
    log_probabilities = wide(F.linear(features, weight)).log_softmax(-1)[target.ne(pad)]
    nll = -log_probabilities.gather(-1, target[target.ne(pad)][:, None]).sum()
    share = smoothing / (log_probabilities.size(-1) - 1)
    return (1 - smoothing - share) * nll - share * log_probabilities.sum(), nll
