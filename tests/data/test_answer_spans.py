"""The search for answers against looking at every span, one window or several."""

import itertools

import numpy as np
import pytest

from hat_fairseq.data.kinds import Question
from hat_fairseq.data.kinds.questions import (
    AnswerOptions,
    AnswerPrediction,
    QuestionKind,
    QuestionOptions,
    ScoredSpan,
    n_best_spans,
    window_answers,
)
from hat_fairseq.data.rows import Row

NO = float("-inf")


def every_span(start: np.ndarray, end: np.ndarray, longest: int, parts: np.ndarray) -> list[tuple[float, int, int]]:
    """All that may be, best first: within one part."""
    spans = [
        (float(start[i] + end[j]), i, j)
        for i, j in itertools.product(range(len(start)), repeat=2)
        if i <= j < i + longest and start[i] > NO and end[j] > NO and parts[i] == parts[j]
    ]
    return sorted(spans, reverse=True)


@pytest.mark.parametrize("longest", [1, 3, 30, 99])
@pytest.mark.parametrize("length", [1, 2, 7, 31])
def test_the_best_spans_are_the_best_of_all(longest: int, length: int) -> None:
    for n_best in [1, 20, 5000]:
        generator = np.random.default_rng(length + longest)
        start, end = generator.normal(size=(2, length)).astype(np.float32)
        start[generator.random(length) < 0.3] = NO
        end[generator.random(length) < 0.3] = NO
        for parts in (None, generator.random(length).round().cumsum()):
            one = np.zeros(length) if parts is None else parts
            found = n_best_spans(start, end, n_best, longest, parts)
            expected = every_span(start, end, longest, one)[:n_best]
            assert [places for _, *places in found] == [places for _, *places in expected]
            assert [score for score, *_ in found] == pytest.approx([score for score, *_ in expected])


CONTEXT = "Rome is old. Oslo is not."


def window(tokens: list[tuple[str, tuple[int, int] | None]]) -> Row:
    """A row of `<s> where </s> </s>` and these tokens with their characters."""
    pairs = [("<s>", None), ("where", None), ("</s>", None), ("</s>", None), *tokens]
    return Row("q", 0, 1, {"source": [token for token, _ in pairs]}, characters=[span for _, span in pairs])


FIRST = [("<s>", None), ("Rome", (0, 4)), ("is", (5, 7)), ("old", (8, 11)), (".", (11, 12))]
SECOND = [("<s>", None), ("Oslo", (13, 17)), ("is", (18, 20)), ("not", (21, 24)), (".", (24, 25))]


def logits(row: Row, no_answer: float, **scores: tuple[float, float]) -> np.ndarray:
    """-3 for every token, and what is given by its name; -9 at markers, so high that they would be chosen: 7."""
    values = {"<s>": (7.0, 7.0)} | scores
    out = np.array([values.get(token, (-3.0, -3.0)) for token in row.tokens], np.float32)
    out[0] = no_answer / 2
    return np.concatenate([out, np.full((4, 2), 50.0, np.float32)])  # beyond the row there is padding


def test_a_window_gives_characters_and_never_a_marker() -> None:
    row = window(FIRST)
    found = window_answers(logits(row, 2.0, Rome=(4.0, 1.0), old=(0.0, 3.0)), row.characters, AnswerOptions(3))
    assert found.no_answer == 2
    assert found.spans[0] == ScoredSpan(7.0, 0, 11)
    assert CONTEXT[0:11] == "Rome is old"
    assert {(span.begin, span.end) for span in found.spans} <= {(0, 4), (0, 7), (0, 11), (0, 12), (8, 11)}
    shorter = window_answers(logits(row, 2.0, Rome=(4.0, 1.0), old=(0.0, 3.0)), row.characters, AnswerOptions(1, 2))
    assert shorter.spans == [ScoredSpan(5.0, 0, 4)]


def answered(rows: list[Row], outputs: list[np.ndarray], **options: float) -> AnswerPrediction:
    record = Question("q", "where", CONTEXT)
    return QuestionKind().predict(record, rows, outputs, [], QuestionOptions(**options))


def test_windows_are_joined_by_the_best_span_and_the_lowest_no_answer() -> None:
    rows = [window(FIRST), window(SECOND)]
    outputs = [logits(rows[0], 1.0, Rome=(2.0, 2.0)), logits(rows[1], 3.0, Oslo=(3.0, 3.0))]
    answer = answered(rows, outputs, n_best=3)
    assert (answer.answer, answer.no_answer_score) == ("Oslo", 1.0 - 6.0)
    assert answer.n_best[0] == {"text": "Oslo", "score": 6.0}
    assert len(answer.n_best) == 3
    assert answer.n_best[1]["text"] == "Rome"
    assert answered(rows, outputs, no_answer_threshold=-5.0).answer == "Oslo"  # not greater
    assert answered(rows, outputs, no_answer_threshold=-5.1).answer == ""
    # a window with nothing of the text has no span, and its word on there being no answer counts
    empty = window([])
    answer = answered([*rows, empty], [*outputs, logits(empty, -9.0)])
    assert (answer.answer, answer.no_answer_score) == ("Oslo", -15.0)
    with pytest.raises(ValueError, match="question 'q': no text is left after truncation"):
        answered([empty], [logits(empty, -9.0)])


def test_what_two_windows_share_is_listed_once() -> None:
    rows = [window(FIRST), window(FIRST[1:])]
    outputs = [logits(row, 0.0, Rome=(1.0, s), old=(1.0, s)) for row, s in zip(rows, (2.0, 3.0), strict=True)]
    best = [(each["text"], each["score"]) for each in answered(rows, outputs, max_answer_length=1).n_best]
    assert best[:2] == [("Rome", 4.0), ("old", 4.0)]
    assert len(best) == len(dict(best)) == 4
    assert (AnswerOptions().n_best, AnswerOptions().max_answer_length) == (20, 30)  # as the authors of SQuAD have them
