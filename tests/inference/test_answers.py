"""The search for answers against looking at every span, one window or several."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from hat_fairseq.data.rows import Row
from hat_fairseq.inference.answers import Span, WindowAnswers, answer_question, n_best_spans, window_answers

NO = float("-inf")


def every_span(start: Tensor, end: Tensor, longest: int) -> list[tuple[float, int, int]]:
    """All that may be, best first."""
    spans = [
        (float(start[i] + end[j]), i, j)
        for i, j in itertools.product(range(len(start)), repeat=2)
        if i <= j < i + longest and start[i] > NO and end[j] > NO
    ]
    return sorted(spans, reverse=True)


@pytest.mark.parametrize("length", [1, 2, 7, 31])
@pytest.mark.parametrize("longest", [1, 3, 30, 99])
@pytest.mark.parametrize("n_best", [1, 20, 5000])
def test_the_best_spans_are_the_best_of_all(length: int, longest: int, n_best: int) -> None:
    generator = torch.Generator().manual_seed(length + longest)
    start, end = torch.randn(2, length, generator=generator)
    start[torch.rand(length, generator=generator) < 0.3] = NO
    end[torch.rand(length, generator=generator) < 0.3] = NO
    found, expected = n_best_spans(start, end, n_best, longest), every_span(start, end, longest)[:n_best]
    assert [places for _, *places in found] == [places for _, *places in expected]
    assert [score for score, *_ in found] == pytest.approx([score for score, *_ in expected])


CONTEXT = "Rome is old. Oslo is not."


def window(tokens: list[tuple[str, tuple[int, int] | None]]) -> Row:
    """A row of `<s> where </s> </s>` and these tokens with their characters."""
    pairs = [("<s>", None), ("where", None), ("</s>", None), ("</s>", None), *tokens]
    return Row("q", 0, 1, {"source": [token for token, _ in pairs]}, [span for _, span in pairs])


FIRST = [("<s>", None), ("Rome", (0, 4)), ("is", (5, 7)), ("old", (8, 11)), (".", (11, 12))]
SECOND = [("<s>", None), ("Oslo", (13, 17)), ("is", (18, 20)), ("not", (21, 24)), (".", (24, 25))]


def logits(row: Row, no_answer: float, **scores: tuple[float, float]) -> Tensor:
    """-3 for every token, and what is given by its name; -9 at markers, so high that they would be chosen: 7."""
    values = {"<s>": (7.0, 7.0)} | scores
    out = torch.tensor([values.get(token, (-3.0, -3.0)) for token in row.tokens])
    out[0] = no_answer / 2
    return torch.cat([out, torch.full((4, 2), 50.0)])  # beyond the row there is padding


def test_a_window_gives_characters_and_never_a_marker() -> None:
    row = window(FIRST)
    found = window_answers(logits(row, 2.0, Rome=(4.0, 1.0), old=(0.0, 3.0)), row.spans, 3, 30)
    assert found.no_answer == 2
    assert found.spans[0] == Span(7.0, 0, 11) and CONTEXT[0:11] == "Rome is old"
    assert {(span.begin, span.end) for span in found.spans} <= {(0, 4), (0, 7), (0, 11), (0, 12), (8, 11)}
    shorter = window_answers(logits(row, 2.0, Rome=(4.0, 1.0), old=(0.0, 3.0)), row.spans, 1, 2)
    assert shorter.spans == [Span(5.0, 0, 4)]


def test_a_window_that_the_model_has_cut() -> None:
    row = window(FIRST)
    cut = logits(row, 0.0, Rome=(1.0, 1.0), old=(5.0, 5.0))[:7]
    assert window_answers(cut, row.spans, 1, 30).spans == [Span(2.0, 0, 4)]
    assert window_answers(cut[:5], row.spans, 1, 30).spans == []  # nothing of the text is left


def test_windows_are_joined_by_the_best_span_and_the_lowest_no_answer() -> None:
    rows = [window(FIRST), window(SECOND)]
    windows = [
        window_answers(logits(rows[0], 1.0, Rome=(2.0, 2.0)), rows[0].spans, 5, 30),
        window_answers(logits(rows[1], 3.0, Oslo=(3.0, 3.0)), rows[1].spans, 5, 30),
    ]
    answer, score, best = answer_question(windows, CONTEXT, 3, threshold=0)
    assert (answer, score) == ("Oslo", 1.0 - 6.0)
    assert best[0] == ("Oslo", 6.0) and len(best) == 3 and best[1][0] == "Rome"
    assert answer_question(windows, CONTEXT, 3, threshold=-5.0)[0] == "Oslo"  # not greater
    assert answer_question(windows, CONTEXT, 3, threshold=-5.1)[0] == ""
    # a window with nothing of the text has no span, and its word on there being no answer counts
    assert answer_question([*windows, WindowAnswers(-9.0, [])], CONTEXT, 3, 0)[:2] == ("Oslo", -15.0)


def test_what_two_windows_share_is_listed_once() -> None:
    rows = [window(FIRST), window(FIRST[1:])]
    windows = []
    for row, score in zip(rows, (2.0, 3.0), strict=True):
        scores = logits(row, 0.0, Rome=(1.0, score), old=(1.0, score))
        windows.append(window_answers(scores, row.spans, 20, 1))
    _, _, best = answer_question(windows, CONTEXT, 20, 0)
    assert best[:2] == [("Rome", 4.0), ("old", 4.0)] and len(best) == len(dict(best)) == 4
