"""From scores of starts and ends to the text of an answer, over all windows of a long text.

Devlin et al. 2019, section 4.3: the score of a span is the sum of its start's and its end's logit; the score of no
answer is that sum at position 0, and of several windows the lowest one counts. A question has no answer if that is
greater than the score of the best span by more than a threshold. The search is exact: every span within the limit of
length is looked at, O(T x length).

Legend: T tokens of a row (window).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..data.encoded import EncodedRow


@dataclass(frozen=True)
class Span:
    """An answer: its score (a sum of two logits) and its characters in the context."""

    score: float
    begin: int
    end: int


@dataclass(frozen=True)
class WindowAnswers:
    """What one window says: the score of no answer, and its best spans, best first (none if no text is left in it)."""

    no_answer: float
    spans: list[Span]


def window_answers(logits: Tensor, row: EncodedRow, n_best: int, max_length: int) -> WindowAnswers:
    """Read a window.

    Args:
        logits: (T, 2) of starts and ends, -inf where none may be; position 0 is no answer. With padding T is greater
            than the row.
        row: the window with its spans of characters.
        n_best: how many spans to keep.
        max_length: longest answer, in tokens.
    """
    spans = (row.spans or [])[: len(logits)]
    start, end = logits[: len(spans)].float().T
    # Markers and separators stand for no text: nothing begins or ends with them.
    outside = torch.tensor([span is None for span in spans])
    found = []
    for score, first, last in best_spans(
        start.masked_fill(outside, float("-inf")), end.masked_fill(outside, float("-inf")), n_best, max_length
    ):
        begins, ends = spans[first], spans[last]
        assert begins is not None and ends is not None
        found.append(Span(score, begins[0], ends[1]))
    return WindowAnswers(float(logits[0].sum()), found)


def best_spans(start: Tensor, end: Tensor, n_best: int, max_length: int) -> list[tuple[float, int, int]]:
    """The best `(score, start, end)` of at most `max_length` tokens, end included, best first; -inf is no span.

    Args:
        start, end: (T,) logits.
    """
    length = len(start)
    scores = start.new_full((min(max_length, length), length), float("-inf"))  # [tokens more than one, start]
    for more in range(len(scores)):
        scores[more, : length - more] = start[: length - more] + end[more:]
    values, places = scores.flatten().topk(min(n_best, scores.numel()))
    found = zip(values.tolist(), places.tolist(), strict=True)
    spans = [(v, p % length, p % length + p // length) for v, p in found if v != float("-inf")]
    return sorted(spans, key=lambda span: (-span[0], *span[1:]))  # equal scores in the order of the text


def answer_question(
    windows: Sequence[WindowAnswers], context: str, n_best: int, threshold: float
) -> tuple[str, float, list[tuple[str, float]]]:
    """Join the windows of a question.

    Args:
        windows: at least one of them with a span.
        context: the text as given.
        n_best: how many answers to return in the list.
        threshold: there is no answer if the no-answer score is greater.
    Returns:
        The answer, empty if there is none; the no-answer score: the lowest no-answer score of all windows less the best
        span's; and the best texts with their scores, different ones, best first.
    """
    spans = sorted((span for window in windows for span in window.spans), key=lambda span: -span.score)
    texts: dict[str, float] = {}
    for span in spans:
        texts.setdefault(context[span.begin : span.end], span.score)
    no_answer_score = min(window.no_answer for window in windows) - spans[0].score
    best = list(texts.items())[:n_best]
    return "" if no_answer_score > threshold else best[0][0], no_answer_score, best
