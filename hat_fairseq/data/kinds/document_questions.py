"""Questions on the paragraphs of a document: the answer is a paragraph, a span of it, yes or no, or there is none.

A prediction combines three heads in all windows. All scores are relative to "none" in the same window, so that those of
several windows can be compared:

    short answer   start + end logit, minus the two of "none", plus type logit `span` minus type logit `none`
    paragraph      its logit (that of "none" is 0), plus log-sum-exp of all types but `none`, minus type logit `none`

The best of all windows count. If `yes` or `no` is the likeliest type, `none` left out, in the window with the best
paragraph, it is the answer, with the logit of this paragraph plus its type logit minus that of `none`. The paper (Zhang
et al. 2021) does not say how it combines the heads; thresholds are tuned on a development part.

Legend: B rows, T tokens of a row (window), N paragraphs of the row with most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hat_fairseq.data.dictionary import BOS as BOS_ID
from hat_fairseq.data.kind import Array, Prediction, Tensor
from hat_fairseq.data.kinds.choices import numbers
from hat_fairseq.data.kinds.questions import QuestionKind, check_text, n_best_of
from hat_fairseq.data.kinds.spans import (
    NO,
    NONE,
    YES,
    AnswerOptions,
    DocumentWindow,
    check_span,
    document_window,
    span_logits,
)
from hat_fairseq.data.kinds.windows import Span, kept_characters, label_paragraphs, token_spans, window_rows
from hat_fairseq.data.labels import ANSWER_TYPES
from hat_fairseq.data.options import TEXT, WINDOWS
from hat_fairseq.data.record import Annotation, Record, Texts
from hat_fairseq.data.row_encoder import RowEncoder
from hat_fairseq.data.rows import Row, marked


@dataclass(frozen=True)
class DocumentQuestion(Record, reads=("question", "paragraphs"), gold="annotations"):
    """A question on the paragraphs of a document with the answers of annotators; ValueError as `Question`."""

    question: str
    paragraphs: Texts
    annotations: tuple[Annotation, ...] | None = None  # None if they are not known

    def __post_init__(self) -> None:
        super().__post_init__()
        for annotation in self.annotations or ():
            number, count = annotation.paragraph, len(self.paragraphs)
            if number is None:
                continue
            if number not in range(count):
                raise ValueError(f"{self.name}: an annotation has paragraph {number}, not one from 0 to {count - 1}")
            for answer in annotation.spans:
                answer.check(self.paragraphs[number], f"{self.name}, paragraph {number}")


@dataclass
class DocumentAnswer(Prediction):
    """The answer to a question on a document."""

    type: str  # one of `ANSWER_TYPES`
    paragraph: int | None  # its number, None for none
    paragraph_score: float
    answer: str  # the short answer, `yes` or `no`; empty for none
    answer_paragraph: int | None  # the paragraph with the short answer
    start: int | None  # of the short answer, characters of this paragraph
    answer_score: float


class DocumentQuestionKind(QuestionKind):
    """A paragraph of a document, a span, yes or no as answer, or no answer: targets (B, 4).

    A row is a window: `<s> question </s> </s> <s> paragraph 1 <s> paragraph 2 ... </s>`. A forward pass computes three
    heads (Zhang et al. 2021, section 3.2): each token as the first and as the last of the short answer; each paragraph,
    from the mean of its tokens; and the `ANSWER_TYPES`, from the mean of the paragraphs. The logit of "in no paragraph"
    is 0, so those of the paragraphs are relative to it.
    """

    name, task = "document_qa", "document_question_answering"
    record = DocumentQuestion
    criterion = "document_answers"
    classes = ANSWER_TYPES
    element = "paragraph"
    options = (TEXT, WINDOWS)
    num_scores = len(ANSWER_TYPES)

    def encode(self, encoder: RowEncoder, record: Any) -> list[Row]:
        """One row for each window of whole paragraphs, the question before each; LongInputError if there is no room."""
        texts = record.sentences
        assert texts is not None  # as the kind demands
        positions = list(map(kept_characters, texts))

        def refer(sentences: list[str], ready: list[str], pieces: list[list[str]]) -> list[list[Span | None]]:
            each = zip(sentences, ready, pieces, positions, strict=True)
            return [
                token_spans([text], [words], [tokens], places, encoder.bpe)[0] for text, words, tokens, places in each
            ]

        question = marked([encoder.one_segment(record, record.parts[0])])
        context = encoder.units(record, texts, element=self.element, refer=refer)
        rows = window_rows(encoder, record, question, context, paragraphs=True)
        if record.annotations is not None:
            label_paragraphs(choose_annotation(record.annotations), positions, context, rows, encoder.counts)
        return rows

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        answered = any(annotation.paragraph is not None for annotation in record.annotations)
        return ("with an answer" if answered else "without answer",)

    def figures(self, split: Mapping[str, Any]) -> dict[str, str]:
        """Returns how many questions lost their answer, by the reader or by the limits of windows, and their share."""
        treatments = split["treatments"]
        by_reader = treatments.get("answers_lost_by_reader", 0)
        total = split["labels"].get("with an answer", 0) + by_reader
        lost = by_reader + treatments.get("examples_left_without_answer", 0)
        return {"gold answers that no window has": f"{lost:,} of {total:,} ({100 * lost / max(1, total):.1f} %)"}

    def heads(self, num_labels: int) -> dict[str, tuple[str, int]]:
        return {
            "answer_span": ("token", 2),
            "answer_paragraph": ("paragraph", 1),
            "answer_type": ("paragraphs", len(ANSWER_TYPES)),
        }

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> dict[str, Tensor]:
        """Scores in fp32, -inf where there is no such answer.

        Returns:
            `span` (B, T, 2), as in `question_answering`; `paragraph` (B, 1 + N): none, and by the number of the marker
            in the row; `type` (B, 5).
        """
        paragraphs = outputs["answer_paragraph"].float().squeeze(-1)
        counts = (tokens == BOS_ID).sum(1)[:, None] - 1  # the first one is the question's
        beyond = numbers(counts, paragraphs.size(1)) >= counts
        scores = paragraphs.new_zeros(len(tokens), 1 + paragraphs.size(1))
        scores[:, 1:] = paragraphs.masked_fill(beyond, float("-inf"))
        spans = span_logits(outputs["answer_span"], tokens)
        return {"span": spans, "paragraph": scores, "type": outputs["answer_type"].float()}

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns first and last token of the short answer, number of the paragraph's marker, type; zeros for none."""
        text, markers = " ".join(label), int((tokens == BOS_ID).sum())
        if len(label) != 4 or not all(map(str.isdigit, label[:3])) or label[3] not in ANSWER_TYPES:
            raise ValueError(f"{text!r:.80} is no answer in a document")
        start, end, number = map(int, label[:3])
        if number >= markers or (number > 0) != (label[3] != "none") or (start > 0) != (label[3] == "span"):
            raise ValueError(f"{text!r} is not in a row of {markers - 1} paragraphs")
        check_span(tokens, start, end)
        return [start, end, number, ANSWER_TYPES.index(label[3])]

    def no_target(self, num_tokens: int, num_markers: int) -> list[int]:
        return [0] * 4

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> DocumentAnswer:
        options = options or AnswerOptions()
        windows = [document_window(each, row.spans, options) for each, row in zip(outputs, rows, strict=True)]
        return answer_document(record, windows, options)

    def official(self, predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {}  # files of Natural Questions and TyDi QA: scoring/official.py


def answer_document(record: Record, windows: Sequence[DocumentWindow], options: AnswerOptions) -> DocumentAnswer:
    """Joins the windows of a document; ValueError if none has text."""
    paragraphs, windows = record.sentences or (), [window for window in windows if window.answers.spans]
    check_text(record, windows)
    chosen = max(windows, key=lambda window: window.best_paragraph()[0])
    spans = [(window.relative(span.score), span) for window in windows for span in window.answers.spans]
    spans.sort(key=lambda pair: -pair[0])
    score, number = chosen.best_paragraph()
    answer_score, span = spans[0]
    answer = DocumentAnswer(record.id, "none", None, score, "", None, None, answer_score)
    if score >= options.paragraph_threshold:
        answer.type, answer.paragraph = "paragraph", number
    kind = max(range(1, len(ANSWER_TYPES)), key=chosen.types.__getitem__)
    if kind in (YES, NO):
        answer.answer_score = chosen.paragraphs[number] + chosen.types[kind] - chosen.types[NONE]
        if answer.answer_score >= options.answer_threshold:
            answer.type = answer.answer = ANSWER_TYPES[kind]
    elif answer_score >= options.answer_threshold:
        answer.type, answer.answer_paragraph, answer.start = "span", span.paragraph, span.begin
        answer.answer = paragraphs[span.paragraph][span.begin : span.end]
    best: dict[str, float] = {}
    for score, each in spans:
        best.setdefault(paragraphs[each.paragraph][each.begin : each.end], score)
    answer.n_best = n_best_of(list(best.items())[: options.n_best])
    return answer


def choose_annotation(annotations: Sequence[Annotation]) -> Annotation:
    """The annotation to train on: the one with the first paragraph, of those with short answers if there are any.

    As in the public baseline for Natural Questions (Alberti et al. 2019).
    """
    located = sorted((each for each in annotations if each.paragraph is not None), key=lambda each: each.paragraph or 0)
    return next((each for each in located if each.spans), located[0] if located else Annotation())
