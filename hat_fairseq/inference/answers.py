"""Finds the text of an answer from the scores of its first and last token, over all windows of a long text.

Devlin et al. 2019, section 4.3: the score of a span is the sum of its start logit and its end logit. The no-answer
score is that sum at position 0; of several windows the lowest one counts. A question has no answer if the no-answer
score exceeds the score of the best span by more than a threshold. The search is exact: it compares all spans within the
limit of length, O(T x length).

Legend: T tokens of a row (window).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class AnswerOptions:
    """Settings for choosing answers; ValueError if one of the first two is below 1."""

    n_best: int = 20  # how many are listed
    max_length: int = 30  # longest answer, in tokens
    threshold: float = 0.0  # a question has no answer if its no-answer score is greater
    paragraph_threshold: float = -math.inf  # of a document, no paragraph with a lower score is the answer
    answer_threshold: float = -math.inf  # of a document, nothing with a lower score is the short answer, `yes` or `no`

    def __post_init__(self) -> None:
        for name, value in (("n-best", self.n_best), ("max-length", self.max_length)):
            if value < 1:
                raise ValueError(f"{name} of answers must be at least 1, not {value}")


@dataclass(frozen=True)
class Span:
    """An answer: its score (a sum of two logits) and its characters in the context, or in a paragraph of it."""

    score: float
    begin: int
    end: int
    paragraph: int = 0


@dataclass(frozen=True)
class WindowAnswers:
    """Answers of one window: its no-answer score, and its best spans, best first (none if no text is left in it)."""

    no_answer: float
    spans: list[Span]


def window_answers(logits: Tensor, spans: Sequence[Any], n_best: int, max_length: int) -> WindowAnswers:
    """Finds the `n_best` best answers of a window, of at most `max_length` tokens.

    Args:
        logits: (T, 2) of starts and ends, -inf where none is allowed; position 0 stands for no answer. T may exceed the
            number of spans: the rest is padding.
        spans: the characters (begin, end) that each token stands for, the paragraph that begins with it, or None.
    """
    spans = spans[: len(logits)]
    start, end = logits[: len(spans)].float().T
    # An answer neither begins nor ends with a marker or separator, which stands for no text.
    outside = torch.tensor([not isinstance(span, tuple) for span in spans])
    start, end = (scores.masked_fill(outside, float("-inf")) for scores in (start, end))
    paragraphs = list(accumulate(spans, lambda before, span: span if isinstance(span, int) else before, initial=0))[1:]
    found = n_best_spans(start, end, n_best, max_length, torch.tensor(paragraphs))
    best = [Span(score, spans[first][0], spans[last][1], paragraphs[first]) for score, first, last in found]
    return WindowAnswers(float(logits[0].sum()), best)


def n_best_spans(
    start: Tensor, end: Tensor, n_best: int, max_length: int, parts: Tensor | None = None
) -> list[tuple[float, int, int]]:
    """Returns the best `(score, start, end)` of at most `max_length` tokens, best first; the end belongs to the span.

    `start`, `end`: (T,) logits; -inf where none is. `parts`: (T,) the part of the text of each token; a span is in one.
    """
    length = len(start)
    scores = start.new_full((min(max_length, length), length), float("-inf"))  # [tokens more than one, start]
    for more in range(len(scores)):
        both = start[: length - more] + end[more:]
        if parts is not None:
            both = both.masked_fill(parts[: length - more] != parts[more:], float("-inf"))
        scores[more, : length - more] = both
    values, places = scores.flatten().topk(min(n_best, scores.numel()))
    ranked = zip(values.tolist(), places.tolist(), strict=True)
    spans = [(v, p % length, p % length + p // length) for v, p in ranked if v != float("-inf")]
    return sorted(spans, key=lambda span: (-span[0], *span[1:]))  # equal scores in the order of the text


def answer_question(
    windows: Sequence[WindowAnswers], context: str, n_best: int, threshold: float
) -> tuple[str, float, list[tuple[str, float]]]:
    """Joins the windows of a question on a text, at least one of which has a span.

    Returns:
        The answer, empty if the no-answer score exceeds the threshold; the no-answer score, the lowest one of all
        windows minus that of the best span; and the `n_best` best texts with scores, all different, best first.
    """
    spans = sorted((span for window in windows for span in window.spans), key=lambda span: -span.score)
    texts: dict[str, float] = {}
    for span in spans:
        texts.setdefault(context[span.begin : span.end], span.score)
    no_answer_score = min(window.no_answer for window in windows) - spans[0].score
    best = list(texts.items())[:n_best]
    return "" if no_answer_score > threshold else best[0][0], no_answer_score, best
