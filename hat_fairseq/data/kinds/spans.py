"""Finds answers, spans of tokens, from the scores of their first and last token, over all windows of a long text.

Devlin et al. 2019, section 4.3: the score of a span is the sum of its start logit and its end logit. The no-answer
score is that sum at position 0; of several windows the lowest one counts. A question has no answer if the no-answer
score exceeds the score of the best span by more than a threshold. The search is exact: it compares all spans within the
limit of length, O(T x length).

Legend: B rows, T tokens of a row (window).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from hat_fairseq.data.dictionary import BOS, EOS, PAD
from hat_fairseq.data.kind import Array, Tensor
from hat_fairseq.data.labels import ANSWER_TYPES

NONE, SPAN, _, YES, NO = range(len(ANSWER_TYPES))


@dataclass(frozen=True)
class AnswerOptions:
    """Settings for choosing answers; ValueError if one of the first two is below 1."""

    n_best: int = field(default=20, metadata={"help": "answers to list"})
    max_answer_length: int = field(default=30, metadata={"help": "longest answer in tokens"})
    no_answer_threshold: float = field(
        default=0.0, metadata={"help": "qa: no answer where no_answer_score is greater; inf: always an answer"}
    )
    paragraph_threshold: float = field(
        default=-math.inf, metadata={"help": "document_qa: no paragraph where paragraph_score is lower"}
    )
    answer_threshold: float = field(
        default=-math.inf, metadata={"help": "document_qa: no short answer where answer_score is lower"}
    )

    def __post_init__(self) -> None:
        for name in ("n_best", "max_answer_length"):
            if (value := getattr(self, name)) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1, not {value}")


@dataclass(frozen=True)
class ScoredSpan:
    """An answer: its score (a sum of two logits) and its characters in the context, or in a paragraph of it."""

    score: float
    begin: int
    end: int
    paragraph: int = 0


@dataclass(frozen=True)
class WindowAnswers:
    """Answers of one window: its no-answer score, and its best spans, best first (none if no text is left in it)."""

    no_answer: float
    spans: list[ScoredSpan]


def window_answers(logits: Array, spans: Sequence[Any], options: AnswerOptions) -> WindowAnswers:
    """Finds the best answers of a window.

    Args:
        logits: (T, 2) of starts and ends, -inf where none is allowed; position 0 stands for no answer. T may exceed the
            number of spans: the rest is padding.
        spans: the characters (begin, end) that each token stands for, the paragraph that begins with it, or None.
    """
    # An answer neither begins nor ends with a marker or separator, which stands for no text.
    outside = np.array([not isinstance(span, tuple) for span in spans])
    start, end = np.where(outside[:, None], -np.inf, logits[: len(spans)]).astype(np.float32).T
    paragraphs = list(accumulate(spans, lambda before, span: span if isinstance(span, int) else before, initial=0))[1:]
    ranked = n_best_spans(start, end, options.n_best, options.max_answer_length, np.array(paragraphs))
    best = [ScoredSpan(score, spans[first][0], spans[last][1], paragraphs[first]) for score, first, last in ranked]
    return WindowAnswers(float(logits[0].sum()), best)


def n_best_spans(
    start: Array, end: Array, n_best: int, max_length: int, parts: Array | None = None
) -> list[tuple[float, int, int]]:
    """Returns the best `(score, start, end)` of at most `max_length` tokens, best first; the end belongs to the span.

    `start`, `end`: (T,) logits; -inf where none is. `parts`: (T,) the part of the text of each token; a span is in one.
    Spans with equal scores are in the order of the text.
    """
    length = len(start)
    scores = np.full((min(max_length, length), length), -np.inf, np.float32)  # [tokens more than one, start]
    for more in range(len(scores)):
        sums = start[: length - more] + end[more:]
        if parts is not None:
            sums[parts[: length - more] != parts[more:]] = -np.inf
        scores[more, : length - more] = sums
    number = min(n_best, scores.size)
    least = np.partition(scores, scores.size - number, axis=None)[scores.size - number]
    extra, first = np.nonzero((scores >= least) & (scores > -np.inf))
    spans = zip(scores[extra, first].tolist(), first.tolist(), (first + extra).tolist(), strict=True)
    return sorted(spans, key=lambda span: (-span[0], *span[1:]))[:number]


def answer_positions(tokens: Tensor) -> Tensor:
    """(B, T) token ids -> (B, T), True where an answer may begin or end: in the second part, or at 0 for none."""
    special = (tokens == BOS) | (tokens == EOS) | (tokens == PAD)
    possible = ((tokens == EOS).cumsum(1) >= 2) & ~special
    possible[:, 0] = True
    return possible


def span_logits(scores: Tensor, tokens: Tensor) -> Tensor:
    """(B, T, 2) scores of first and last tokens in fp32, -inf where no answer may begin or end."""
    return scores.float().masked_fill(~answer_positions(tokens)[..., None], float("-inf"))


def check_span(tokens: Array, start: int, end: int) -> None:
    """Raises ValueError for first and last tokens of an answer that are not in the second part of a row."""
    possible = answer_positions(tokens[None])[0]
    if not (start <= end < len(tokens) and possible[start] and possible[end] and (start or not end)):
        raise ValueError(f"tokens {start} to {end} of {len(tokens)} are not in the text of the question")


@dataclass(frozen=True)
class DocumentWindow:
    """Scores of one window: of short answers, of paragraphs by their numbers, and of `ANSWER_TYPES`."""

    answers: WindowAnswers
    paragraphs: dict[int, float]
    types: list[float]

    def best_paragraph(self) -> tuple[float, int]:
        """Returns the score and the number of the best paragraph."""
        greatest = max(self.types[1:])
        any_type = greatest + math.log(sum(math.exp(each - greatest) for each in self.types[1:])) - self.types[NONE]
        number = max(self.paragraphs, key=self.paragraphs.__getitem__)
        return self.paragraphs[number] + any_type, number

    def relative(self, score: float) -> float:
        """Returns the score of a short answer, relative to "none"."""
        return score - self.answers.no_answer + self.types[SPAN] - self.types[NONE]


def document_window(logits: Mapping[str, np.ndarray], spans: Sequence[Any], options: AnswerOptions) -> DocumentWindow:
    """Returns the scores of a window.

    `logits`: `span` (T, 2), `paragraph` (1 + N,), `type`; padded at the end. `spans`: what each token stands for.
    """
    paragraphs = [span for span in spans[:-1] if isinstance(span, int)]  # truncation may leave a marker at the end
    scores = logits["paragraph"][1 : 1 + len(paragraphs)].tolist()
    answers = window_answers(logits["span"], spans, options)
    return DocumentWindow(answers, dict(zip(paragraphs, scores, strict=True)), logits["type"].tolist())
