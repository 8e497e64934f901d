"""The hypotheses of a beam search: `Beams` has the active ones, `Finished` the finished ones.

`best_continuations` gives what `fairseq.search.BeamSearch` gives, except for the order of equal scores, which
`torch.topk` does not define. It does not sort the vocabulary: the best values of a row are in the blocks with the
largest maxima, and the best of a document are among the best of its rows.

Legend: N documents of the batch, D unfinished documents, K beam, C candidates, V vocabulary, R = D K rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BLOCK = 64


@dataclass(frozen=True)
class Candidates:
    """Continuations of a step, best first.

    Attributes:
        scores: (D, C) sums of log-probabilities.
        tokens: (D, C).
        parents: (D, C) hypotheses that the tokens continue, 0..K-1.
    """

    scores: Tensor
    tokens: Tensor
    parents: Tensor

    def select(self, documents: Tensor) -> Candidates:
        return Candidates(self.scores[documents], self.tokens[documents], self.parents[documents])


class Beams:
    """The active hypotheses.

    Args:
        documents: N.
        beam: K.
        longest: tokens of the longest hypothesis, </s> included.
        start: id of the first token of every hypothesis.
        pad: id of padding.
    Attributes:
        documents: (D,) places of the unfinished documents in the batch.
        tokens: (D, K, longest + 1).
        scores: (D, K, longest) sums of log-probabilities up to each token after the first.
        ended: (D, K) True = the hypothesis has ended and only fills its place.
    """

    def __init__(self, documents: int, beam: int, longest: int, start: int, pad: int, device: torch.device) -> None:
        self.beam = beam
        self.documents = torch.arange(documents, device=device)
        self.tokens = torch.full((documents, beam, longest + 1), pad, device=device)
        self.tokens[:, :, 0] = start
        self.scores = torch.zeros(documents, beam, longest, device=device)
        self.ended = torch.zeros(documents, beam, dtype=torch.bool, device=device)

    def rows(self, step: int) -> Tensor:
        """(D K, step + 1) tokens so far."""
        return self.tokens[:, :, : step + 1].flatten(0, 1)

    def endings(self, candidates: Candidates, end: int) -> Tensor:
        """(D, C) True = the candidate ends a hypothesis. `Finished` takes it if it is among the first K."""
        ends = candidates.tokens.eq(end) & candidates.scores.ne(float("-inf"))
        ends[:, : self.beam] &= ~self.ended
        return ends

    def keep(self, documents: Tensor) -> None:
        """Keeps the (D',) given documents, 0..D-1."""
        self.documents, self.tokens = self.documents[documents], self.tokens[documents]
        self.scores, self.ended = self.scores[documents], self.ended[documents]

    def advance(self, step: int, candidates: Candidates, ends: Tensor) -> Tensor:
        """Continues with the best K candidates that do not end.

        Returns:
            (D, K) old hypotheses that the new ones continue.
        """
        passed_over = ends.clone()
        passed_over[:, : self.beam] |= self.ended
        size = passed_over.size(1)
        rank = passed_over * (2 * self.beam) + torch.arange(size, device=ends.device)
        rank, chosen = rank.topk(self.beam, dim=1, largest=False)
        self.ended = rank >= 2 * self.beam
        parents = candidates.parents.gather(1, chosen)
        past = parents.unsqueeze(-1)
        self.tokens[:, :, : step + 1] = self.tokens.gather(1, past.expand(-1, -1, step + 1))
        self.scores[:, :, :step] = self.scores.gather(1, past.expand(-1, -1, step))
        self.tokens[:, :, step + 1] = candidates.tokens.gather(1, chosen)
        self.scores[:, :, step] = candidates.scores.gather(1, chosen)
        return parents


class Finished:
    """The finished hypotheses, up to K for each document. Collecting them never waits for the device.

    Args:
        documents: N.
        beam: K.
        longest: tokens of the longest hypothesis, </s> included.
        end: id of </s>.
        length_penalty: scores are divided by the length to this power; None: they are sums.
    """

    def __init__(
        self, documents: int, beam: int, longest: int, end: int, length_penalty: float | None, device: torch.device
    ) -> None:
        self._beam, self._end, self._length_penalty = beam, end, length_penalty
        # place K is for those that come too late
        self._tokens = torch.zeros(documents, beam + 1, longest, dtype=torch.int64, device=device)
        self._sums = torch.zeros(documents, beam + 1, longest, device=device)
        self._lengths = torch.zeros(documents, beam + 1, dtype=torch.int64, device=device)
        self._counts = torch.zeros(documents, dtype=torch.int64, device=device)

    def collect(self, step: int, beams: Beams, candidates: Candidates, ends: Tensor) -> None:
        """Takes the hypotheses that end in this step, the best first."""
        ends = ends[:, : self._beam]
        if ends.device.type == "cpu" and not ends.any():
            return
        documents, counts = beams.documents.unsqueeze(1), self._counts[beams.documents]
        places = counts.unsqueeze(1) + ends.cumsum(1) - 1
        places = places.masked_fill(~ends, self._beam).clamp(max=self._beam)
        self._counts[beams.documents] = (counts + ends.sum(1)).clamp(max=self._beam)
        past = candidates.parents[:, : self._beam].unsqueeze(2).expand(-1, -1, step + 1)
        tokens, sums = beams.tokens[:, :, 1:].gather(1, past), beams.scores.gather(1, past)
        tokens[:, :, step], sums[:, :, step] = self._end, candidates.scores[:, : self._beam]
        self._tokens[:, :, : step + 1][documents, places] = tokens
        self._sums[:, :, : step + 1][documents, places] = sums
        self._lengths[documents, places] = step + 1

    def complete(self, documents: Tensor) -> list[bool]:
        """Which of the (D,) documents have K hypotheses. Waits for the device."""
        return (self._counts[documents] == self._beam).tolist()

    def sorted(self) -> list[list[dict[str, Any]]]:
        """The hypotheses of each document on the CPU, best first, as fairseq's generator returns them."""
        tokens, sums, lengths = self._tokens.cpu(), self._sums.cpu(), self._lengths.tolist()
        found = [
            [self._hypothesis(tokens[n, k, : lengths[n][k]], sums[n, k, : lengths[n][k]]) for k in range(count)]
            for n, count in enumerate(self._counts.tolist())
        ]
        return [sorted(hypotheses, key=lambda h: -float(h["score"])) for hypotheses in found]

    def _hypothesis(self, tokens: Tensor, sums: Tensor) -> dict[str, Tensor]:
        each, total = sums.diff(prepend=sums.new_zeros(1)), sums[-1].clone()
        score = total if self._length_penalty is None else total / len(tokens) ** self._length_penalty
        nothing = torch.empty(0)
        return {"tokens": tokens, "score": score, "attention": nothing, "alignment": nothing, "positional_scores": each}


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
