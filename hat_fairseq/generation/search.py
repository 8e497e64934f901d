"""Beam search with one decoder, or with the mean probability of several. torch only.

It gives the hypotheses and scores of fairseq's generator; those with equal scores may be in another order. The
hypotheses of a document share its memory, and n-grams are compared on the device.

Legend: D unfinished documents, K beam, R = D K rows of hypotheses, C = 2 K candidates, T tokens, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Memory(Protocol):
    """The encoder's output, with one row for each document."""

    def select(self, documents: Tensor) -> Any:
        """Selects the rows of the (D,) documents."""


class Decoder(Protocol):
    """What the search needs of a decoder; `networks.hat.Decoder` has it."""

    def new_cache(self) -> Any:
        """Returns an empty cache of the tokens of all hypotheses, like `networks.hat.DecoderCache`."""

    def states(self, tokens: Tensor, memory: Any, cache: Any) -> Tensor:
        """Maps (R, U) tokens after the cached ones -> (R, U, C) states, and caches these tokens."""

    def logits(self, states: Tensor) -> Tensor:
        """Maps (R, C) states -> (R, V) logits of the next token."""


NOT_NUMBERS = (
    "the model's probabilities are not numbers (NaN). Its weights are NaN, or fp16 overflows: generate in fp32 or bf16"
)
FORBIDDEN = "no token may follow: give a smaller --min-len, or --no-repeat-ngram-size 0"


@dataclass(frozen=True)
class SearchOptions:
    """What is searched for.

    Attributes:
        start, end, pad, unk: ids of the first token of every hypothesis, of </s>, of padding and of unknown words.
        max_len: tokens of the longest hypothesis, without </s>; several numbers: of each document.
        min_len: tokens of the shortest hypothesis, without </s>.
        beam: K, at most V - 2.
        len_penalty: scores are divided by the length to this power; None: they are sums.
        unk_penalty: subtracted from the log-probability of `unk`.
        temperature: logits are divided by it.
        no_repeat_ngram_size: n-grams that do not occur twice in a hypothesis, at least 2; 0: all may.
    """

    start: int
    end: int
    pad: int
    unk: int
    max_len: int | tuple[int, ...]
    min_len: int = 1
    beam: int = 4
    len_penalty: float | None = 1.0
    unk_penalty: float = 0.0
    temperature: float = 1.0
    no_repeat_ngram_size: int = 0


class Hypothesis(NamedTuple):
    """A finished hypothesis on the CPU: (T,) tokens with </s>, its score, and the (T,) log-probabilities of tokens."""

    tokens: Tensor
    score: Tensor
    positional_scores: Tensor


class Continuations(NamedTuple):
    """(D, C) continuations, best first: sums of log-probabilities, tokens, and hypotheses (0..K-1) they continue."""

    scores: Tensor
    tokens: Tensor
    parents: Tensor


@torch.no_grad()
def beam_search(
    decoders: Sequence[Decoder],
    memories: Sequence[Memory],
    documents: int,
    device: torch.device,
    options: SearchOptions,
    names: Sequence[str] = (),
) -> list[list[Hypothesis]]:
    """Returns up to K hypotheses of each document, best first.

    Args:
        decoders: one, or an ensemble.
        memories: the encoder's output for each decoder, with one row for each document.
        documents: their number.
        device: of the decoders.
        names: of the documents, for messages.
    Raises:
        ValueError: a document whose probabilities are NaN, or without a hypothesis.
    """
    beams, caches = _Beams(documents, device, options), [decoder.new_cache() for decoder in decoders]
    memories = list(memories)
    for step in range(beams.longest):
        rows = beams.tokens[:, :, : step + 1].flatten(0, 1)
        log_probs = _log_probs(rows, zip(decoders, memories, caches, strict=True), options.temperature)
        _forbid(log_probs, rows, options, beams.at_limit(step))
        scores = beams.scores[:, :, step - 1] if step else None
        candidates = best_continuations(log_probs.unflatten(0, (-1, options.beam)), scores)
        ends = beams.finish(step, candidates)
        unfinished = beams.unfinished(step)
        if not unfinished:
            break
        all_stay = len(unfinished) == len(beams.tokens)
        places = torch.tensor(unfinished, device=device)
        order = beams.advance(step, candidates, ends, places)
        if not all_stay:
            memories = [memory.select(places) for memory in memories]
        for cache in caches:
            cache.reorder(order, None if all_stay else places)
    check_hypotheses(beams.finished, beams.scores, names)
    return [sorted(hypotheses, key=lambda h: -float(h.score)) for hypotheses in beams.finished]


def check_hypotheses(documents: list[list[Hypothesis]], unfinished: Tensor, names: Sequence[str] = ()) -> None:
    """Raises ValueError, with the first of the `names`, if a document has no hypothesis, or one whose score is NaN.

    Comparing candidates with NaN gives an arbitrary text, or none. `unfinished`: scores of hypotheses without an end.
    """
    bad = [n for n, each in enumerate(documents) if not each or any(math.isnan(h.score) for h in each)]
    if bad:
        nan = any(documents[n] for n in bad) or bool(unfinished.isnan().any())
        first = f" (the first is {names[bad[0]]!r})" if names else ""
        reason = NOT_NUMBERS if nan else FORBIDDEN
        raise ValueError(f"no text for {len(bad)} of {len(documents)} documents{first}: {reason}")


def _log_probs(rows: Tensor, decoders: Any, temperature: float) -> Tensor:
    """(R, T) tokens -> (R, V) log-probabilities of the next token, fp32 or wider; those of the mean probability."""
    log_probs = []
    for decoder, memory, cache in decoders:
        states = decoder.states(rows[:, cache.length :], memory, cache)
        logits = decoder.logits(states[:, -1])
        logits = logits if temperature == 1 else logits / temperature
        log_probs.append(torch.log_softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32)))
    return log_probs[0] if len(log_probs) == 1 else torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))


def _forbid(log_probs: Tensor, rows: Tensor, options: SearchOptions, at_limit: list[int]) -> None:
    """Sets the (R, V) log-probabilities of tokens that may not follow the (R, T) tokens to -inf, in place.

    `at_limit`: the places (0..D-1) of documents whose hypotheses end here at the latest.
    """
    step = rows.size(1) - 1
    log_probs[:, options.pad] = -math.inf
    log_probs[:, options.unk] -= options.unk_penalty
    if at_limit:
        of_documents = log_probs.unflatten(0, (-1, options.beam))
        of_documents[at_limit, :, : options.end] = -math.inf
        of_documents[at_limit, :, options.end + 1 :] = -math.inf
    if step < options.min_len:
        log_probs[:, options.end] = -math.inf
    if options.no_repeat_ngram_size:
        block_repeated_ngrams(log_probs, rows, options.no_repeat_ngram_size)


def best_continuations(log_probs: Tensor, scores: Tensor | None) -> Continuations:
    """Returns the 2 K best candidates of each document; fewer if the vocabulary is smaller.

    Args:
        log_probs: (D, K, V) of the next token.
        scores: (D, K) sums of log-probabilities so far; None in the first step, where all hypotheses are equal.
    """
    _, beam, vocabulary = log_probs.shape
    sums = log_probs[:, 0] if scores is None else (log_probs + scores.unsqueeze(2)).flatten(1)
    number = min(2 * beam, sums.size(1) - 1)  # less one: padding is never taken
    best, index = sums.topk(number, dim=1)
    return Continuations(best, index % vocabulary, index // vocabulary)


def block_repeated_ngrams(log_probs: Tensor, tokens: Tensor, size: int) -> None:
    """Sets to -inf every token that would repeat an n-gram of its hypothesis (Paulus et al. 2018, section 2.5).

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
    # Scatter with amin: +inf leaves a log-probability as it is, -inf forbids it.
    penalty = log_probs.new_full(repeats.shape, float("inf")).masked_fill(repeats, float("-inf"))
    log_probs.scatter_reduce_(1, windows[..., -1], penalty, "amin")


class _Beams:
    """The hypotheses of a search.

    Attributes:
        finished: of every document.
        longest: L, the tokens of the longest hypothesis of all documents, with </s>.
        tokens: (D, K, L + 1) of the active ones, with the start token.
        scores: (D, K, L) sums of log-probabilities; place t: up to token t + 1.
    """

    def __init__(self, documents: int, device: torch.device, options: SearchOptions) -> None:
        self.finished: list[list[Hypothesis]] = [[] for _ in range(documents)]
        self._documents = list(range(documents))  # the unfinished ones
        self._options, beam, limit = options, options.beam, options.max_len
        self._limits = [limit] * documents if isinstance(limit, int) else list(limit)
        self.longest = max(self._limits, default=0) + 1
        self.tokens = torch.full((documents, beam, self.longest + 1), options.start, device=device)
        self.scores = torch.zeros(documents, beam, self.longest, device=device)

    def finish(self, step: int, candidates: Continuations) -> Tensor:
        """Stores those that end among the K best candidates, up to K a document; returns (D, C) True = it ends."""
        beam = self._options.beam
        ends = candidates.tokens.eq(self._options.end) & candidates.scores.ne(-math.inf)
        for place, rank in ends[:, :beam].nonzero().tolist():
            hypotheses = self.finished[self._documents[place]]
            if len(hypotheses) < beam:
                parent = candidates.parents[place, rank]
                tokens = torch.cat([self.tokens[place, parent, 1 : step + 1], candidates.tokens[place, rank, None]])
                sums = torch.cat([self.scores[place, parent, :step], candidates.scores[place, rank, None]])
                hypotheses.append(self._hypothesis(tokens.cpu(), sums.cpu()))
        return ends

    def _hypothesis(self, tokens: Tensor, sums: Tensor) -> Hypothesis:
        score, penalty = sums[-1], self._options.len_penalty
        score = score.clone() if penalty is None else score / len(tokens) ** penalty
        return Hypothesis(tokens, score, sums.diff(prepend=sums.new_zeros(1)))

    def at_limit(self, step: int) -> list[int]:
        """Returns the places (0..D-1) of documents whose hypotheses have as many tokens as they may."""
        return [place for place, number in enumerate(self._documents) if self._limits[number] == step]

    def unfinished(self, step: int) -> list[int]:
        """Returns the places (0..D-1) of documents with fewer than K hypotheses, which may have more tokens."""
        beam, limits = self._options.beam, self._limits
        places = enumerate(self._documents)
        return [place for place, number in places if len(self.finished[number]) < beam and limits[number] > step]

    def advance(self, step: int, candidates: Continuations, ends: Tensor, places: Tensor) -> Tensor:
        """Continues the documents at (D',) places with their best K candidates that do not end.

        Returns:
            (D' K,) the old row that each new one continues.
        """
        beam = self._options.beam
        scores, tokens, parents = (x[places] for x in candidates)
        key = ends[places] * (2 * beam) + torch.arange(ends.size(1), device=ends.device)  # those that end are last
        chosen = key.topk(beam, dim=1, largest=False).indices
        rows = (places.unsqueeze(1) * beam + parents.gather(1, chosen)).flatten()
        self._documents = [self._documents[place] for place in places.tolist()]
        self.tokens, self.scores = (x.flatten(0, 1)[rows].unflatten(0, (-1, beam)) for x in (self.tokens, self.scores))
        self.tokens[:, :, step + 1] = tokens.gather(1, chosen)
        self.scores[:, :, step] = scores.gather(1, chosen)
        return rows
