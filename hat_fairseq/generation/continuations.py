"""The best continuations of a beam without sorting the vocabulary, and blocking of repeated n-grams.

`best_continuations` gives what `fairseq.search.BeamSearch` gives, except for the order of exactly equal scores, which
`torch.topk` does not define. The best values of a row lie in the blocks with the largest maxima, and the best of a
document are among the best of its rows: one pass over the log-probabilities.

Legend: D documents, K beam, V vocabulary, R rows of log-probabilities (one for each hypothesis).
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64


def best_of_rows(x: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """`x.topk(number)` over the last axis of (R, V), except for the order of equal values."""
    blocks = x.size(1) // BLOCK
    if blocks <= number:
        return x.topk(number, dim=1)
    whole = x[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))
    chosen = whole.amax(2).topk(number, dim=1)[1]  # (R, number) blocks; the best values are in them or in the rest
    values = whole.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK)).flatten(1)
    values = torch.cat([values, x[:, blocks * BLOCK :]], dim=1)
    best, places = values.topk(number, dim=1)
    in_block = chosen.gather(1, (places // BLOCK).clamp(max=number - 1)) * BLOCK + places % BLOCK
    in_rest = places - number * BLOCK + blocks * BLOCK
    return best, torch.where(places < number * BLOCK, in_block, in_rest)


def best_continuations(log_probs: Tensor, scores: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The 2 K candidates of each document with the highest scores, best first.

    Args:
        log_probs: (D, K, V) of the next token.
        scores: (D, K) sums of log-probabilities so far; None in the first step, where all hypotheses are equal.
    Returns:
        (D, 2 K) sums, tokens and hypotheses (0..K-1) that the tokens continue; fewer if the vocabulary is smaller.
    """
    documents, beam, vocabulary = log_probs.shape
    rows = log_probs[:, :1] if scores is None else log_probs
    number = min(2 * beam, rows.size(1) * vocabulary - 1)  # less one: padding is never taken
    of_row = min(number, vocabulary)
    best, tokens = best_of_rows(rows.reshape(-1, vocabulary), of_row)
    sums = best.view(documents, -1, of_row)
    if scores is not None:
        sums = sums + scores.unsqueeze(2)
    sums, places = sums.flatten(1).topk(number, dim=1)
    return sums, tokens.view(documents, -1).gather(1, places), places // of_row


def block_repeated_ngrams(log_probs: Tensor, tokens: Tensor, size: int) -> None:
    """Sets to -inf every token that would repeat an n-gram of its hypothesis (Paulus et al. 2018, section 2.5).

    No host-device synchronisation.

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
