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

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hat_fairseq.data.dictionary import BOS
from hat_fairseq.data.kind import Array, Prediction, Tensor
from hat_fairseq.data.kinds.choices import indices
from hat_fairseq.data.kinds.questions import (
    NO_ANSWER,
    AnswerOptions,
    QuestionKind,
    WindowAnswers,
    check_span,
    check_text,
    n_best_of,
    span_logits,
    window_answers,
)
from hat_fairseq.data.kinds.windows import (
    ANSWER_TYPES,
    Unit,
    characters_of,
    covered,
    find_span,
    kept_characters,
    units_with_characters,
    window_rows,
)
from hat_fairseq.data.options import TEXT, WINDOWS
from hat_fairseq.data.record import Annotation, Record, Texts
from hat_fairseq.data.rows import Row, RowEncoder, marked
from hat_fairseq.data.sentences import Divided, Divider, Prepared
from hat_fairseq.data.text import is_blank
from hat_fairseq.options import option

NONE, SPAN, _, YES, NO = range(len(ANSWER_TYPES))
NO_PARAGRAPH = [*NO_ANSWER, "0", ANSWER_TYPES[NONE]]  # of a window of paragraphs


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
                known = f"{count} paragraphs, counted from 0" if count else "no paragraphs"
                raise ValueError(f"{self.place} has {known}, and an annotation of paragraph {number}")
            for answer in annotation.spans:
                answer.check(self.paragraphs[number], f"{self.place}, paragraph {number}")


@dataclass(frozen=True)
class DocumentQuestionOptions(AnswerOptions):
    """Settings for answering questions on the paragraphs of a document."""

    paragraph_threshold: float = option(
        -math.inf, "document_qa: give no paragraph if its paragraph_score is lower than this", most=math.inf
    )
    answer_threshold: float = option(
        -math.inf, "document_qa: give no short answer if its answer_score is lower than this", most=math.inf
    )


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
    prediction_options = DocumentQuestionOptions

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Divides the question; each paragraph is one sentence."""
        paragraphs = divider.sentences(record, record.paragraphs, element=self.element)
        return [divider.one_segment(record, record.question), paragraphs]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns a row for each window of whole paragraphs, the question before each.

        Raises:
            LongInputError: the question leaves no room for the paragraphs, or all is too long and the policy is
                `error`.
        """
        record: Any = prepared.record
        question, paragraphs = marked([encoder.one_segment(prepared.texts[0])]), prepared.texts[1]
        positions = list(map(kept_characters, record.paragraphs))
        context = [
            units_with_characters([paragraph], [tokens], places, encoder.bpe)[0]
            for paragraph, tokens, places in zip(
                paragraphs.sentences, encoder.units(paragraphs), positions, strict=True
            )
        ]
        rows = window_rows(encoder, record, question, context, paragraphs=True)
        if record.annotations is not None:
            _label_rows(choose_annotation(record.annotations), positions, context, rows, encoder.counts)
        return rows

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        answered = any(annotation.paragraph is not None for annotation in record.annotations)
        return ("with an answer" if answered else "without answer",)

    def heads(self, num_labels: int) -> dict[str, tuple[str, int]]:
        return {
            "answer_span": ("token", 2),
            "answer_paragraph": ("paragraph", 1),
            "answer_type": ("paragraphs", len(ANSWER_TYPES)),
        }

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> dict[str, Tensor]:
        """Returns scores in fp32, -inf where there is no such answer.

        Returns:
            `span` (B, T, 2), as in `question_answering`; `paragraph` (B, 1 + N): none, and by the number of the marker
            in the row; `type` (B, 5).
        """
        paragraphs = outputs["answer_paragraph"].float().squeeze(-1)
        counts = (tokens == BOS).sum(1)[:, None] - 1  # the first one is the question's
        beyond = indices(counts, paragraphs.size(1)) >= counts
        scores = paragraphs.new_zeros(len(tokens), 1 + paragraphs.size(1))
        scores[:, 1:] = paragraphs.masked_fill(beyond, float("-inf"))
        spans = span_logits(outputs["answer_span"], tokens)
        return {"span": spans, "paragraph": scores, "type": outputs["answer_type"].float()}

    def target_size(self, tokens: int, markers: int) -> int:
        return 4

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns first and last token of the short answer, number of the paragraph's marker, type; zeros for none."""
        text, markers = " ".join(label), int((tokens == BOS).sum())
        if len(label) != 4 or not all(map(str.isdigit, label[:3])) or label[3] not in ANSWER_TYPES:
            raise ValueError(f"{text!r:.80} is no answer in a document")
        start, end, number = map(int, label[:3])
        if number >= markers or (number > 0) != (label[3] != "none") or (start > 0) != (label[3] == "span"):
            raise ValueError(f"{text!r} is not in a row of {markers - 1} paragraphs")
        check_span(tokens, start, end)
        return [start, end, number, ANSWER_TYPES.index(label[3])]

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> DocumentAnswer:
        options = options or DocumentQuestionOptions()
        windows = [document_window(each, row, options) for each, row in zip(outputs, rows, strict=True)]
        return answer_document(record, windows, options)


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


def document_window(logits: Mapping[str, Array], row: Row, options: AnswerOptions) -> DocumentWindow:
    """Returns the scores of a window.

    `logits`: `span` (T, 2), `paragraph` (1 + N,), `type`; padded at the end.
    """
    paragraphs = [each for each in row.elements[:-1] if each is not None]  # truncation may leave a marker at the end
    scores = logits["paragraph"][1 : 1 + len(paragraphs)].tolist()
    answers = window_answers(logits["span"], row.characters, options, row.elements)
    return DocumentWindow(answers, dict(zip(paragraphs, scores, strict=True)), logits["type"].tolist())


def answer_document(
    record: Record, windows: Sequence[DocumentWindow], options: DocumentQuestionOptions
) -> DocumentAnswer:
    """Joins the windows of a document; ValueError if none has text."""
    paragraphs, windows = record.elements or (), [window for window in windows if window.answers.spans]
    check_text(record, windows)
    chosen = max(windows, key=lambda window: window.best_paragraph()[0])
    score, number = chosen.best_paragraph()
    spans = [(window.relative(span.score), span) for window in windows for span in window.answers.spans]
    spans.sort(key=lambda pair: -pair[0])
    answer_score, span = spans[0]
    answer = DocumentAnswer(record.id, "none", None, score, "", None, None, answer_score)
    if score >= options.paragraph_threshold:
        answer.type, answer.paragraph = "paragraph", number
    texts = [(paragraphs[each.paragraph][each.begin : each.end], score) for score, each in spans]
    kind = max(range(1, len(ANSWER_TYPES)), key=chosen.types.__getitem__)
    if kind in (YES, NO):
        answer.answer_score = chosen.paragraphs[number] + chosen.types[kind] - chosen.types[NONE]
        if answer.answer_score >= options.answer_threshold:
            answer.type = answer.answer = ANSWER_TYPES[kind]
    elif answer_score >= options.answer_threshold:
        answer.type, answer.answer_paragraph, answer.start = "span", span.paragraph, span.begin
        answer.answer = texts[0][0]
    answer.n_best = n_best_of(texts, options)
    return answer


def choose_annotation(annotations: Sequence[Annotation]) -> Annotation:
    """Returns the annotation to train on: that with the first paragraph, of those with short answers if there are any.

    As in the public baseline for Natural Questions (Alberti et al. 2019).
    """
    located = [each for each in annotations if each.paragraph is not None]
    return min(located, key=lambda each: (not each.spans, each.paragraph), default=Annotation())


def _label_rows(
    annotation: Annotation,
    positions: Sequence[Sequence[int]],
    context: Sequence[Unit],
    rows: Sequence[Row],
    counts: Counter[str],
) -> None:
    """Label the rows that have the answer, and all others with `NO_PARAGRAPH`.

    A row has a short answer, from the start of its first span to the end of its last one, if all of it is there; a
    paragraph without short answer likewise, but if no row has all of it, each row with a piece of it.
    """
    for row in rows:
        row.streams["label"] = NO_PARAGRAPH
    number = annotation.paragraph
    if number is None:
        return
    places = [_place(row, number) for row in rows]
    if annotation.spans:
        spans = [span for span in annotation.spans if not is_blank(span.text)]
        begin, end = min((span.start for span in spans), default=0), max((span.end for span in spans), default=0)
        characters = characters_of(begin, end, positions[number])
        counts["answers_not_found"] += characters is None
        for row, (marker, tokens) in zip(rows, places, strict=True):
            span = find_span(row.characters[tokens], *characters) if characters and marker else None
            if span:
                first, last = (tokens.start + token for token in span)
                counts["answers_inside_tokens"] += covered(row, first, last) != characters
                row.streams["label"] = [str(first), str(last), str(marker), "span"]
    else:
        longest = max(tokens.stop - tokens.start for _, tokens in places)
        least = len(context[number]) if longest == len(context[number]) else 1
        for row, (marker, tokens) in zip(rows, places, strict=True):
            if marker and tokens.stop - tokens.start >= least:
                row.streams["label"] = [*NO_ANSWER, str(marker), annotation.yes_no or "paragraph"]
    counts["examples_left_without_answer"] += all(row.label == NO_PARAGRAPH for row in rows)


def _place(row: Row, paragraph: int) -> tuple[int, slice]:
    """Number of a paragraph's marker in a row, 0 if it is not there; and where its tokens are."""
    markers = [place for place, each in enumerate(row.elements) if each is not None]
    for number, place in enumerate(markers, start=1):
        if row.elements[place] == paragraph:
            return number, slice(place + 1, markers[number] if number < len(markers) else len(row.elements))
    return 0, slice(0, 0)
