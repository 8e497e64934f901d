"""Blocking of repeated n-grams by comparing tensors (Paulus et al. 2018, section 2.5)."""

from __future__ import annotations

from torch import Tensor


def block_repeated_ngrams(log_probs: Tensor, tokens: Tensor, size: int) -> None:
    """Sets to -inf every token that would repeat an n-gram of its hypothesis. No host-device synchronisation.

    Args:
        log_probs: (R, V), changed in place.
        tokens: (R, T) tokens of each hypothesis so far, start token included.
        size: n, at least 2.
    """
    if tokens.size(1) < size:
        return
    windows = tokens.unfold(1, size, 1)  # (R, T - n + 1, n)
    last = tokens[:, None, tokens.size(1) - size + 1 :]
    repeats = windows[..., :-1].eq(last).all(dim=2)
    # amin: inf keeps a token's value, and -inf wins where the token follows several windows
    penalty = log_probs.new_full(repeats.shape, float("inf")).masked_fill(repeats, float("-inf"))
    log_probs.scatter_reduce_(1, windows[..., -1], penalty, "amin")
