"""The definition of what kernels compute: the reference of the tests. Analysis takes attention weights from it.

Kernels of windows and blocks compute `attention` under a mask. They have no dropout.

Legend: B rows, H heads, N heads of keys and values, T queries, K keys, E channels of a head, V symbols.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
# Gated linear units (Shazeer 2020), which need twice the channels: what they do to the first half of them.
GATED: dict[str, Callable[[Tensor], Tensor]] = {"geglu": F.gelu, "swiglu": F.silu}


def activated(x: Tensor, activation: str | None) -> Tensor:
    """Returns activation(x), or `x` where that is None; a gated one maps (..., 2 F) -> (..., F)."""
    if activation in GATED:
        hidden, gate = x.chunk(2, dim=-1)
        return GATED[activation](hidden) * gate
    return x if activation is None else ACTIVATIONS[activation](x)


def wide(x: Tensor) -> Tensor:
    """Returns `x` in fp32, or in fp64 if it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def rotate(x: Tensor, theta: float, positions: Tensor | None = None, factor: float = 1.0) -> Tensor:
    """Rotates (B, H, T, E) queries or keys by the angles of their positions (Su et al. 2021).

    Channel i < E / 2 and channel i + E / 2 are one point of a plane, which turns by position / theta^(2 i / E). A score
    then depends on the difference of two positions alone. Angles are in fp32.

    Args:
        positions: (B, T); None: token t is at position t.
        factor: positions are divided by it (linear scaling, Chen et al. 2023).
    """
    size, length = x.size(-1), x.size(-2)
    frequencies = 1.0 / theta ** (torch.arange(0, size, 2, device=x.device).float() / size) / factor
    if positions is None:
        positions = torch.arange(length, device=x.device)
    angles = (positions.float().unsqueeze(-1) * frequencies).unsqueeze(-3)  # B or 1 x 1 x T x E / 2
    cos, sin = angles.cos(), angles.sin()
    first, second = wide(x).chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x)


def attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Computes softmax(queries keys^T / sqrt(E)) values (Vaswani et al. 2017, section 3.2.1).

    The softmax is in fp32 or wider.

    Args:
        queries, keys, values: (B, H, T, E), (B, N, K, E) and (B, N, K, E); H / N heads of queries share one of keys.
        mask: bool (True = may attend) or added to the scores; broadcastable to (B, H, T, K).
        causal: query t attends to keys up to t.
    Returns:
        (B, H, T, E) output, and (B, H, T, K) weights.
    """
    if (group := queries.size(1) // keys.size(1)) > 1:
        keys, values = (x.repeat_interleave(group, dim=1) for x in (keys, values))
    scores = queries @ keys.transpose(-2, -1) * queries.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype is torch.bool else scores + mask
    if causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), float("-inf"))
    weights = wide(scores).softmax(-1).to(scores)
    return weights @ values, weights


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """Computes activation(x weight^T + bias)."""
    return activated(F.linear(x, weight, bias), activation)


def label_smoothed_loss(
    features: Tensor, weight: Tensor, target: Tensor, smoothing: float, pad: int
) -> tuple[Tensor, Tensor]:
    """Sums label-smoothed cross-entropy and negative log-likelihood over the positions whose target is not `pad`.

    Szegedy et al. 2016, section 7, as fairseq does it: the share `smoothing` is spread over the V - 1 wrong symbols.
    """
    log_probabilities = wide(F.linear(features, weight)).log_softmax(-1)[target.ne(pad)]
    nll = -log_probabilities.gather(-1, target[target.ne(pad)][:, None]).sum()
    share = smoothing / (log_probabilities.size(-1) - 1)
    return (1 - smoothing - share) * nll - share * log_probabilities.sum(), nll
