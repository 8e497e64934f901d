"""Questions on a text: the answer is a span of it, or there is none.

Devlin et al. 2019, section 4.3: the score of a span is the sum of its start logit and its end logit. The no-answer
score is that sum at position 0; of several windows the lowest one counts. A question has no answer if the no-answer
score exceeds the score of the best span by more than a threshold. The search is exact: it compares all spans within the
limit of length, O(T x length).

Legend: B rows, T tokens of a row (window).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from hat_fairseq.data.dictionary import BOS, EOS, PAD
from hat_fairseq.data.kind import HEAD, Array, LabelledKind, Prediction, Tensor
from hat_fairseq.data.kinds.windows import (
    characters_of,
    covered,
    find_span,
    kept_characters,
    units_with_characters,
    window_rows,
)
from hat_fairseq.data.options import POLICIES, ROWS, TEXT, WINDOWS
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.rows import Row, RowEncoder, Span, marked
from hat_fairseq.data.sentences import Divided, Divider, Prepared
from hat_fairseq.data.text import is_blank
from hat_fairseq.options import check_values, option

NO_ANSWER = ["0", "0"]  # the label of a window of a text


@dataclass(frozen=True)
class Question(Record, reads=("question", "text"), gold="answers"):
    """A question with answers that are spans of a text; ValueError if one does not stand where it says."""

    question: str
    text: str
    answers: tuple[Answer, ...] | None = None  # empty if the text has no answer, None if that is not known

    def __post_init__(self) -> None:
        super().__post_init__()
        for answer in self.answers or ():
            answer.check(self.text, self.place)


@dataclass
class AnswerPrediction(Prediction):
    """The answer to a question, empty for none."""

    answer: str
    no_answer_score: float  # the lowest one of all windows minus the score of the best span


@dataclass(frozen=True)
class AnswerOptions:
    """Settings for choosing spans; ValueError if a whole number is below 1, or a threshold is NaN."""

    n_best: int = option(20, "list at most this many answers", least=1)
    max_answer_length: int = option(30, "the maximum number of tokens of an answer", least=1)

    def __post_init__(self) -> None:
        check_values(type(self), self)


@dataclass(frozen=True)
class QuestionOptions(AnswerOptions):
    """Settings for answering questions on a text."""

    no_answer_threshold: float = option(
        0.0,
        "qa: give no answer if no_answer_score is greater than this; inf always gives an answer",
        least=-math.inf,
        most=math.inf,
    )


class QuestionKind(LabelledKind):
    """A span of a text as answer, or no answer: targets (B, 2), first and last token, 0 0 for no answer.

    As for SQuAD 2.0 (Rajpurkar et al. 2018; Devlin et al. 2019): the logits (B, T, 2) score each token as the first and
    as the last of the answer; the first token of the row stands for "no answer". A row is a window of the text.
    """

    name, task = "qa", "question_answering"
    record: ClassVar[type[Record]] = Question
    criterion = "answer_spans"
    classes: ClassVar[tuple[str, ...]] = ()
    positions = True
    policies = POLICIES
    options: ClassVar[tuple[str, ...]] = (TEXT, ROWS, WINDOWS)
    head_level = "token"
    num_scores = 2
    details = "answers"
    prediction_options: ClassVar[Any] = QuestionOptions

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Divides the question and the text."""
        return [divider.short_text(record, record.question), divider.text(record, record.text)]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns a row for each window of the text, the question before each; its label is `START END` of each answer.

        Raises:
            LongInputError: the question leaves no room for the text, or all is too long and the policy is `error`.
        """
        record: Any = prepared.record
        question, text = prepared.texts
        positions = kept_characters(record.text, "space" if encoder.settings.whole else encoder.settings.line_breaks)
        units = units_with_characters(text.sentences, encoder.units(text), positions, encoder.bpe)
        rows = window_rows(encoder, record, marked(encoder.text(question)), encoder.segments(units))
        if record.answers is not None:
            _label_answers(record.answers, positions, rows, encoder.counts)
        return rows

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return ("with an answer" if record.answers else "without answer",)

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> Any:
        return span_logits(outputs[HEAD], tokens)

    def scores(self, logits: Tensor) -> Tensor:
        """Returns the logits, by which the windows of a text are compared."""
        return logits

    def target_size(self, tokens: int, markers: int) -> int:
        return 2

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns first and last token of each answer, `0 0` for none."""
        if not label or len(label) % 2 or not all(word.isdigit() for word in label):
            raise ValueError(f"{' '.join(label)!r:.80} are not the first and the last tokens of answers")
        places = list(map(int, label))
        for start, end in zip(places[::2], places[1::2], strict=True):
            check_span(tokens, start, end)
        return places

    def predict(
        self, record: Any, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> Any:
        options = options or QuestionOptions()
        windows = [window_answers(each, row.characters, options) for each, row in zip(outputs, rows, strict=True)]
        spans = sorted((span for window in windows for span in window.spans), key=lambda span: -span.score)
        check_text(record, spans)
        best = n_best_of([(str(record.text)[span.begin : span.end], span.score) for span in spans], options)
        no_answer_score = min(window.no_answer for window in windows) - spans[0].score
        answer = "" if no_answer_score > options.no_answer_threshold else best[0]["text"]
        return AnswerPrediction(record.id, answer, no_answer_score, n_best=best)


def _label_answers(answers: Sequence[Answer], positions: Sequence[int], rows: list[Row], counts: Counter[str]) -> None:
    """Label each row with the answers that are wholly in it, each place once and in the order of `answers`, else `0 0`.

    Positions count tokens of the row from 0, both inclusive. Counts answers that show nothing
    (`answers_not_found`), that are cut off or longer than what two windows share (`answers_in_no_row`), and rows in
    which the first or the last token stands for more than the answer (`answers_inside_tokens`).
    """
    visible = [answer for answer in answers if not is_blank(answer.text)]
    characters = [span for each in visible if (span := characters_of(each.start, each.end, positions)) is not None]
    counts["answers_not_found"] += len(answers) - len(characters)
    by_row = [[find_span(row.characters, *span) for span in characters] for row in rows]
    counts["answers_in_no_row"] += sum(not any(in_row) for in_row in zip(*by_row, strict=True))
    if answers and not any(span for in_row in by_row for span in in_row):
        counts["examples_left_without_answer"] += 1
    for row, in_row in zip(rows, by_row, strict=True):
        pairs = {tokens: span for tokens, span in zip(in_row, characters, strict=True) if tokens}
        counts["answers_inside_tokens"] += any(covered(row, *tokens) != span for tokens, span in pairs.items())
        row.streams["label"] = [str(place) for tokens in pairs for place in tokens] or NO_ANSWER


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


def window_answers(
    logits: Array, characters: Sequence[Span | None], options: AnswerOptions, elements: Sequence[int | None] = ()
) -> WindowAnswers:
    """Finds the best answers of a window.

    Args:
        logits: (T, 2) of starts and ends, -inf where none is allowed; position 0 stands for no answer. T may exceed the
            number of tokens: the rest is padding.
        characters: those that each token stands for, as of `Row`.
        elements: the paragraph that begins with a token, as of `Row`; empty for a text without paragraphs.
    """
    # An answer neither begins nor ends with a marker or separator, which stands for no text.
    places = [(0, 0) if span is None else span for span in characters]
    outside = np.array([span is None for span in characters])
    start, end = np.where(outside[:, None], -np.inf, logits[: len(places)]).astype(np.float32).T
    begun = elements or [None] * len(places)
    paragraphs = list(accumulate(begun, lambda before, each: before if each is None else each, initial=0))[1:]
    ranked = n_best_spans(start, end, options.n_best, options.max_answer_length, np.array(paragraphs))
    best = [ScoredSpan(score, places[first][0], places[last][1], paragraphs[first]) for score, first, last in ranked]
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


def n_best_of(answers: Sequence[tuple[str, float]], options: AnswerOptions) -> list[dict[str, Any]]:
    """Returns the first of the texts, best first, each once, with their scores."""
    best: dict[str, float] = {}
    for text, score in answers:
        best.setdefault(text, score)
    return [{"text": text, "score": score} for text, score in list(best.items())[: options.n_best]]


def check_text(record: Record, spans: Sequence[Any]) -> None:
    """Raises ValueError for a question whose windows have no text."""
    if not spans:
        raise ValueError(f"question {record.id!r}: no text is left after truncation in preprocessing")


def answer_positions(tokens: Tensor) -> Tensor:
    """Maps (B, T) token ids -> (B, T), True where an answer may begin or end: in the second part, or at 0 for none."""
    special = (tokens == BOS) | (tokens == EOS) | (tokens == PAD)
    possible = ((tokens == EOS).cumsum(1) >= 2) & ~special
    possible[:, 0] = True
    return possible


def span_logits(scores: Tensor, tokens: Tensor) -> Tensor:
    """Returns (B, T, 2) scores of first and last tokens in fp32, -inf where no answer may begin or end."""
    return scores.float().masked_fill(~answer_positions(tokens)[..., None], float("-inf"))


def check_span(tokens: Array, start: int, end: int) -> None:
    """Raises ValueError for first and last tokens of an answer that are not in the second part of a row."""
    possible = answer_positions(tokens[None])[0]
    if not (start <= end < len(tokens) and possible[start] and possible[end] and (start or not end)):
        raise ValueError(f"tokens {start} to {end} of {len(tokens)} are not in the text of the question")
