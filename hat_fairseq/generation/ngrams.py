"""Blocking of repeated n-grams, as one comparison of tensors (Paulus et al. 2018, section 2.5)."""

from __future__ import annotations

from torch import Tensor


def block_repeated_ngrams(log_probs: Tensor, tokens: Tensor, size: int) -> None:
    """Makes every token impossible that would complete an n-gram which its hypothesis already has. Waits for no number.

    Args:
        log_probs: (R, V), changed in place.
        tokens: (R, T) what each hypothesis has so far, its start token included.
        size: n, at least 2.
    """
    if tokens.size(1) < size:
        return
    windows = tokens.unfold(1, size, 1)  # (R, T - n + 1, n)
    last = tokens[:, None, tokens.size(1) - size + 1 :]
    repeats = windows[..., :-1].eq(last).all(dim=2)
    # amin leaves what is not a repetition as it is, also where a token occurs in both
    penalty = log_probs.new_full(repeats.shape, float("inf")).masked_fill(repeats, float("-inf"))
    log_probs.scatter_reduce_(1, windows[..., -1], penalty, "amin")
