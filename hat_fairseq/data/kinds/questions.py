"""Questions on a text: the answer is a span of it, or there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hat_fairseq.data.kind import HEAD, Array, LabelledKind, Prediction, Tensor
from hat_fairseq.data.kinds.spans import AnswerOptions, check_span, span_logits, window_answers
from hat_fairseq.data.kinds.windows import Span, kept_characters, label_answers, token_spans, window_rows
from hat_fairseq.data.long_input import POLICIES
from hat_fairseq.data.options import ROWS, TEXT, WINDOWS
from hat_fairseq.data.record import Answer, Record
from hat_fairseq.data.row_encoder import RowEncoder
from hat_fairseq.data.rows import Row, marked


@dataclass(frozen=True)
class Question(Record, reads=("question", "text"), gold="answers"):
    """A question with answers that are spans of a text; ValueError if one does not stand where it says."""

    question: str
    text: str = field()  # without a default, unlike the property that it overrides
    answers: tuple[Answer, ...] | None = None  # empty if the text has no answer, None if that is not known

    def __post_init__(self) -> None:
        super().__post_init__()
        for answer in self.answers or ():
            answer.check(self.text, self.name)


@dataclass
class AnswerPrediction(Prediction):
    """The answer to a question, empty for none."""

    answer: str
    no_answer_score: float  # the lowest one of all windows minus the score of the best span


class QuestionKind(LabelledKind):
    """A span of a text as answer, or no answer: targets (B, 2), first and last token, 0 0 for no answer.

    As for SQuAD 2.0 (Rajpurkar et al. 2018; Devlin et al. 2019): the logits (B, T, 2) score each token as the first and
    as the last of the answer; the first token of the row stands for "no answer". A row is a window of the text.
    """

    name, task = "qa", "question_answering"
    record: ClassVar[type[Record]] = Question
    criterion = "answer_spans"
    hub_task = "question-answering"
    classes: ClassVar[tuple[str, ...]] = ()
    positions = True
    main = -1
    policies = POLICIES
    options: ClassVar[tuple[str, ...]] = (TEXT, ROWS, WINDOWS)
    head_level = "token"
    num_scores = 2
    prediction_options = AnswerOptions

    def encode(self, encoder: RowEncoder, record: Any) -> list[Row]:
        """One row for each window of the text, the question before each; the label is `START END` of each answer in it.

        Raises:
            LongInputError: the question leaves no room for the text, or all is too long and the policy is `error`.
        """
        question = marked(encoder.short_text(record, record.parts[0]))
        text = record.text
        assert text is not None  # as the kind demands
        positions = kept_characters(text)

        def refer(sentences: list[str], ready: list[str], pieces: list[list[str]]) -> list[list[Span | None]]:
            return token_spans(sentences, ready, pieces, positions, encoder.bpe)

        rows = window_rows(encoder, record, question, encoder.text(record, text, refer))
        if record.answers is not None:
            label_answers(record.answers, positions, rows, encoder.counts)
        return rows

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return ("with an answer" if record.answers else "without answer",)

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> Any:
        return span_logits(outputs[HEAD], tokens)

    def scores(self, logits: Tensor) -> Tensor:
        """Returns the logits, by which the windows of a text are compared."""
        return logits

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns first and last token of each answer, `0 0` for none."""
        if not label or len(label) % 2 or not all(word.isdigit() for word in label):
            raise ValueError(f"{' '.join(label)!r:.80} are not the first and the last tokens of answers")
        places = list(map(int, label))
        for start, end in zip(places[::2], places[1::2], strict=True):
            check_span(tokens, start, end)
        return places

    def no_target(self, num_tokens: int, num_markers: int) -> list[int]:
        return [0, 0]

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> Any:
        options = options or AnswerOptions()
        windows = [window_answers(each, row.spans, options) for each, row in zip(outputs, rows, strict=True)]
        spans = sorted((span for window in windows for span in window.spans), key=lambda span: -span.score)
        check_text(record, spans)
        texts: dict[str, float] = {}
        for span in spans:
            texts.setdefault(str(record.text)[span.begin : span.end], span.score)
        no_answer_score = min(window.no_answer for window in windows) - spans[0].score
        best = list(texts.items())[: options.n_best]
        answer = "" if no_answer_score > options.no_answer_threshold else best[0][0]
        return AnswerPrediction(record.id, answer, no_answer_score, n_best=n_best_of(best))

    def official(self, predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """SQuAD's own files."""
        return {
            "predictions.json": {each["id"]: each["answer"] for each in predictions},
            "null_odds.json": {each["id"]: each["no_answer_score"] for each in predictions},
            "nbest_predictions.json": {each["id"]: each["n_best"] for each in predictions},
        }


def check_text(record: Record, spans: Sequence[Any]) -> None:
    """Raises ValueError for a question whose windows have no text."""
    if not spans:
        raise ValueError(f"question {record.id!r}: no text is left after truncation in preprocessing")


def n_best_of(best: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"text": text, "score": score} for text, score in best]
