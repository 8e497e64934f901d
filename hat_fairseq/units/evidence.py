"""Evidence: which turns or sentences of a long document answer each of its questions, as passages and as lines.

A passage is all that is said about a question, in QMSum 55 turns; lines are the few turns or sentences that the answer
rests on. A record may have one of them, or both.

A row is `<s> question 1 <s> question 2 </s> </s> <s> unit 1 <s> unit 2 ... </s>`, where a unit is a turn with its role
before it, `PM: Good morning.`, or a sentence. The document is there once, whatever the number of questions.

Legend: B rows, Q questions of a row, N units of a row, K classes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Self

import numpy as np

from hat_fairseq.data.dictionary import BOS, EOS
from hat_fairseq.data.kind import IGNORED, Array, LabelledKind, Prediction, Tensor, register_kind
from hat_fairseq.data.kinds.windows import as_given, kept_characters, places_of
from hat_fairseq.data.options import ROWS, TEXT, Settings
from hat_fairseq.data.record import Answer, OfTurns, Record, Texts, Turn, as_sentences
from hat_fairseq.data.rows import Part, Row, RowEncoder, at_markers, marked
from hat_fairseq.data.sentences import Divided, Divider, Prepared
from hat_fairseq.data.text import EmptyDocumentError, is_blank, normalise
from hat_fairseq.options import check_values, option

EVIDENCE = "evidence"
# What is known of a unit and a question: in a passage or not, and beside it one of the lines or not; `-` is unknown.
CLASSES = ("0", "1", "00", "01", "10", "11", "-0", "-1")
OF_DOCUMENT = 2  # is added to 0 and 1 for targets about the whole document
MOST_LINES = 3  # of a passage that are named


def as_numbers(evidence: Any) -> Any:
    """Returns the numbers of a cell of a table: a line for each question, `-` for one that has no answer."""
    if not isinstance(evidence, str):
        return evidence
    lines = [[] if line.strip() == "-" else line.replace(",", " ").split() for line in evidence.split("\n")]
    if not all(map(str.isdecimal, (word for line in lines for word in line))):
        raise ValueError(f"evidence is not numbers: {evidence!r:.60}")
    return [list(map(int, line)) for line in lines]


# The targets of a passage and of a line for each class.
PAIRS = {name: tuple(IGNORED if sign in "-" else int(sign) for sign in f"{name:-<2}") for name in CLASSES}


@dataclass(frozen=True)
class Evidence(
    OfTurns,
    Record,
    reads=("questions", "text", "elements"),
    one_of=("text", "turns", "sentences"),
    gold="evidence",
    repairs={"questions": as_sentences, "sentences": as_sentences, "evidence": as_numbers, "lines": as_numbers},
):
    """Questions on a document, and for each the turns or sentences that answer it.

    Attributes:
        evidence: for each question the numbers of turns or sentences, from 0; empty if the document has no answer.
        spans: instead of numbers, for each question places in the text; of turns or sentences in the texts of all,
            with a line break between two.
        lines: for each question the numbers of the few turns or sentences that the answer rests on.
    """

    questions: Texts
    turns: tuple[Turn, ...] | None = None
    text: str | None = None
    sentences: Texts | None = None
    evidence: tuple[tuple[int, ...], ...] | None = None
    spans: tuple[tuple[Answer, ...], ...] | None = None
    lines: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence is not None and self.spans is not None:
            raise ValueError(f"{self.place}: evidence and spans are two forms of the same thing; give one of them")
        for key, values in (("evidence", self.evidence), ("spans", self.spans), ("lines", self.lines)):
            if values is not None and len(values) != len(self.questions):
                raise ValueError(f"{self.place}: {key} is for {len(values)} questions of {len(self.questions)}")
        if self.text is not None and (self.evidence is not None or self.lines is not None):
            raise ValueError(f"{self.place}: evidence of running text is spans, because sentences are not numbered yet")
        count = len(self.elements or ())
        for key, values in (("evidence", self.evidence), ("lines", self.lines)):
            if wrong := [number for numbers in values or () for number in numbers if number not in range(count)]:
                raise ValueError(f"{self.place}: {wrong[0]} in {key} is not one of 0 to {count - 1}")
        for answer in (each for answers in self.spans or () for each in answers):
            answer.check(raw_text(self), self.place)

    def without_gold(self) -> Self:
        return replace(self, evidence=None, spans=None, lines=None)

    @property
    def gold_value(self) -> Any:
        return next((each for each in (self.evidence, self.spans, self.lines) if each is not None), None)


@dataclass(frozen=True)
class Unit:
    """A turn or a sentence of a document.

    Attributes:
        number: of the turn or sentence, from 0; turns and sentences without text count.
        begin, end: its characters in the text of the document, the end exclusive.
    """

    number: int
    begin: int
    end: int


def raw_text(record: Record) -> str:
    """Returns running text as it is, or turns and sentences with line breaks between them."""
    return as_given(record.parts[-1])


@dataclass(frozen=True)
class Threshold:
    """From which probability on a unit is chosen.

    Attributes:
        value: a probability; or, if it is `relative`, how far the logarithm of the odds may be below that of the most
            probable unit of the question.
    """

    value: float
    relative: bool = False

    def of(self, probabilities: Array) -> float:
        """Returns the probability from which on units of a question with these (N,) probabilities are chosen."""
        if not self.relative:
            return self.value
        best = float(np.clip(probabilities.max(initial=0.0), 1e-9, 1 - 1e-9))
        return best / (best + (1 - best) * float(np.exp(self.value)))


@dataclass(frozen=True)
class Decision:
    """How passages, lines and answers are chosen.

    Attributes:
        passages, lines: thresholds of units, None for what the model was not trained with; without passages, they are
            made of lines.
        answers: the probability from which on a document is said to answer a question; 0 for a model that was not
            trained with questions that it does not answer.
        most_passages: of a question; None for all.
    """

    passages: Threshold | None
    lines: Threshold | None = None
    answers: float = 0.0
    most_passages: int | None = None


@dataclass
class EvidencePrediction(Prediction):
    """What answers the questions of a document.

    Attributes:
        questions: for each question
            `question`; `answered` and `answer_probability`, whether anything in the document answers it;
            `threshold`, `probabilities`: those of passages, one for each turn or sentence, None for one without text or
            one that was truncated;
            `line_threshold`, `line_probabilities`: the same of lines, of a model that was trained with lines;
            `passages`, best first: consecutive units with their `first` and `last` number, `begin` and `end` in
            characters of the document, `probability`, the greatest among its units, `roles`, `text`, and `lines`, the
            numbers of at most three units that are most probably lines, best first; none of a model without lines.
    """

    questions: list[dict[str, Any]]


@dataclass(frozen=True)
class EvidenceOptions:
    """Settings for choosing passages; ValueError for numbers out of range."""

    threshold: float | None = option(
        None,
        "evidence: list turns or sentences with at least this probability (default: the model's threshold)",
        least=0,
        most=1,
    )
    most_passages: int | None = option(None, "evidence: list at most this many passages for a question", least=1)

    def __post_init__(self) -> None:
        check_values(EvidenceOptions, self)


class EvidenceKind(LabelledKind):
    """Which units of a document answer each question: targets (B, QN), logits (B, QN), question by question."""

    name, task = "evidence", "document_evidence"
    record = Evidence
    criterion = "evidence"
    classes = CLASSES
    num_scores = 1
    options = (TEXT, ROWS)
    keeps = "element"
    verb = "ask"
    prediction_options = EvidenceOptions

    def check_texts(self, record: Any) -> None:
        if not record.questions or any(map(is_blank, record.questions)):
            raise EmptyDocumentError(f"{record.name} has {'an empty' if record.questions else 'no'} question")
        super().check_texts(record)

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Returns each question as one segment, and the turns or sentences that have text as the last one."""
        self.check_texts(record)
        questions = [divider.one_segment(record, question) for question in record.questions]
        if record.text is not None:
            return [*questions, divider.sentences(record, record.text)]
        numbers = with_text(record)
        divider.counts["sentences_empty"] += len(record.elements) - len(numbers)
        texts = tuple(f"{prefix_of(record, number)}{record.elements[number]}" for number in numbers)
        return [*questions, divider.sentences(record, texts)]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row; its label has a class for each question and unit."""
        record: Any = prepared.record
        *questions, text = prepared.texts
        units, first = units_of(prepared, encoder.settings), Part(marked(list(map(encoder.one_segment, questions))))
        segments = encoder.units(text)
        elements = at_markers(segments, (each.number for each in units))
        characters = at_markers(segments, ((each.begin, each.end) for each in units))
        part = encoder.row(record, [first, Part(marked(segments), elements, characters)], truncated=1)
        row = Row(record.id, 0, 1, {"source": part.tokens}, part.elements, part.characters)
        if record.gold_value is not None:
            in_row = units_of_row(row)
            unknown: list[Any] = [None] * len(record.questions)
            in_passages = evidence_of(record, units, encoder.counts) or unknown
            as_lines = known_units(record.lines, units, encoder.counts) or unknown
            pairs = list(zip(in_passages, as_lines, strict=True))
            encoder.counts["evidence_truncated"] += sum(
                each.number in (lines if numbers is None else numbers)
                for numbers, lines in pairs
                for each in units[len(in_row) :]
            )
            row.streams["label"] = [class_of(*pair, each.number) for pair in pairs for each in in_row]
        return [row]

    def with_letters(self, prepared: Prepared) -> Prepared:
        """Gives questions, and turns or sentences, the letters of each; roles before a turn have none."""
        record: Any = prepared.record
        *questions, document = prepared.texts
        texts = [
            text._replace(letters=[letter and (letter[0], number, letter[2]) for letter in text.letters or ()])
            for number, text in enumerate(questions)
        ]
        if record.text is None:
            units = [(number, len(prefix_of(record, number))) for number in with_text(record)]
            letters = [letter and after(*units[letter[1] or 0], letter) for letter in document.letters or ()]
            document = document._replace(letters=letters)
        return replace(prepared, texts=[*texts, document])

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return tuple("with evidence" if each else "without evidence" for each in record.gold_value)

    def heads(self, num_labels: int) -> dict[str, tuple[str, int]]:
        return {EVIDENCE: ("evidence", 1)}

    def logits(self, outputs: Mapping[str, Tensor], tokens: Tensor, num_rows: Tensor | None) -> Tensor:
        """Maps (B, Q, 1 + N, 2) scores -> (B, 2 Q (1 + N)), those of a row at its beginning."""
        scores = outputs[EVIDENCE]
        counts = [count_questions_and_units(row) for row in tokens.cpu()]
        sizes = [2 * questions * (1 + units) for questions, units in counts]
        flat = scores.new_zeros(len(scores), max(sizes))
        for row, (size, (questions, units)) in enumerate(zip(sizes, counts, strict=True)):
            flat[row, :size] = scores[row, :questions, : 1 + units].flatten()
        return flat

    def scores(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def target_size(self, tokens: int, markers: int) -> int:
        return 2 * markers

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns for each question 1 + N pairs: of the document, then of the units, as passage and as line.

        A unit has 0 or 1, or `IGNORED` where that is not known; the document 2 or 3, whether it answers the question.
        """
        questions, units = count_questions_and_units(tokens)
        if len(label) != questions * units or not {*CLASSES}.issuperset(label):
            raise ValueError(f"{len(label)} labels for {questions} questions on {units} units")
        pairs = [PAIRS[each] for each in label]
        target = list[int]()
        for first in range(0, len(pairs), units):
            own = pairs[first : first + units]
            answered = OF_DOCUMENT + any(1 in pair for pair in own)
            target += [answered, answered, *(number for pair in own for number in pair)]
        return target

    def options_of(self, options: Any, models: Sequence[Any]) -> Decision:
        """Returns how the models choose, on average; a threshold of the options replaces that of passages.

        ValueError for models that choose in different ways.
        """
        options = options or EvidenceOptions()
        decisions = [decision_of(model.classification_head(EVIDENCE)) for model in models]
        passages, lines = (average_of([getattr(each, name) for each in decisions]) for name in ("passages", "lines"))
        if options.threshold is not None:
            passages = Threshold(options.threshold)
        answers = sum(each.answers for each in decisions) / len(models)
        return Decision(passages, lines, answers, options.most_passages)

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> EvidencePrediction:
        units, decision = units_of_row(rows[0]), options
        assert isinstance(record, Evidence) and isinstance(decision, Decision)
        questions = record.questions
        size = 2 * len(questions) * (1 + len(units))
        scores = outputs[0][:size].reshape(len(questions), 1 + len(units), 2)
        record_without_gold = record.without_gold()
        answers = [
            answer_of(record_without_gold, units, question, score, decision)
            for question, score in zip(questions, scores, strict=True)
        ]
        return EvidencePrediction(record.id, answers)


register_kind(EvidenceKind())


def after(number: int, prefix: int, letter: tuple[int, int | None, int]) -> tuple[int, int | None, int] | None:
    """Returns a letter of a unit with its number and place without the prefix; None for one of the prefix."""
    part, _, at = letter
    return None if at < prefix else (part, number, at - prefix)


def answer_of(record: Any, units: Sequence[Unit], question: str, scores: Array, decision: Decision) -> dict[str, Any]:
    """Returns what a model finds for a question; see `EvidencePrediction`.

    Args:
        scores: (1 + N, 2) probabilities of the document, then of the units, as passages and as lines.
    """
    by_passage, by_line = scores[1:].T
    if decision.passages is None:
        by_passage = by_line
    own_lines = None if decision.lines is None else by_line
    threshold = (decision.passages or decision.lines or Threshold(0.5)).of(by_passage)
    answer: dict[str, Any] = {
        "question": question,
        "answered": bool(scores[0].mean() >= decision.answers),
        "answer_probability": round(float(scores[0].mean()), 6),
        "passages": passages(record, units, by_passage, threshold, decision.most_passages, own_lines),
        "threshold": round(threshold, 6),
        "probabilities": by_number(units, by_passage, record),
    }
    if decision.lines is not None:
        answer["line_threshold"] = round(decision.lines.of(by_line), 6)
        answer["line_probabilities"] = by_number(units, by_line, record)
    return answer


def decision_of(head: Any) -> Decision:
    """Returns how a head chooses: what a validation has put into its buffers; 0.5 where there was none."""
    values, relative = head.thresholds.tolist(), head.relative.tolist()
    passages, lines = (
        Threshold(value, of_best) if value >= 0 else None for value, of_best in zip(values, relative, strict=True)
    )
    if passages is None and lines is None:
        passages = Threshold(0.5)
    return Decision(passages, lines, head.answers.item())


def average_of(thresholds: Sequence[Threshold | None]) -> Threshold | None:
    """Returns the mean of thresholds, None if one is missing; ValueError if some are relative and some are not."""
    known = [each for each in thresholds if each is not None]
    if len(known) < len(thresholds):
        return None
    if len({each.relative for each in known}) > 1:
        raise ValueError("the models choose passages in different ways: give --threshold, or one model")
    return replace(known[0], value=sum(each.value for each in known) / len(known))


def class_of(passages: set[int] | None, lines: set[int] | None, number: int) -> str:
    """Returns the class, one of `CLASSES`, of a unit for a question; None: not known of any unit."""
    in_passage = "-" if passages is None else str(int(number in passages))
    return in_passage + ("" if lines is None else str(int(number in lines)))


def units_of(prepared: Prepared, settings: Settings) -> list[Unit]:
    """Returns the turns or sentences that have text, and where they are in the text."""
    record: Any = prepared.record
    texts = [sentence.text for sentence in prepared.texts[-1].sentences]
    if record.text is not None:
        numbers, positions = list(range(len(texts))), kept_characters(record.text, settings.line_breaks)
    else:
        numbers, positions = with_text(record), kept_characters(record.elements)
        prefixes = (normalise(prefix_of(record, number), Counter()) for number in numbers)
        texts = [text[len(prefix) :] for prefix, text in zip(prefixes, texts, strict=True)]
    return [Unit(number, *place) for number, place in zip(numbers, places_of(texts, positions), strict=True)]


def units_of_row(row: Row) -> list[Unit]:
    """Returns the units whose markers are in a row."""
    pairs = zip(row.elements, row.characters, strict=True)
    return [Unit(number, *place) for number, place in pairs if number is not None and place is not None]


def with_text(record: Any) -> list[int]:
    """Returns the numbers of the turns or sentences that have text."""
    return [number for number, text in enumerate(record.elements) if not is_blank(text)]


def prefix_of(record: Any, number: int) -> str:
    """Returns what stands before a turn: `PM: `, or nothing where its role is not known."""
    role = None if record.roles is None else record.roles[number]
    return "" if role is None else f"{role}: "


def evidence_of(record: Any, units: Sequence[Unit], counts: Counter[str]) -> list[set[int]] | None:
    """Returns the numbers of the units in passages of each question; counts what has no text; None if not known."""
    if record.spans is None:
        return known_units(record.evidence, units, counts)
    gold = []
    for answers in record.spans:
        numbers = [{u.number for u in units if u.begin < each.end and each.start < u.end} for each in answers]
        counts["evidence_without_text"] += numbers.count(set())
        gold.append(set().union(*numbers))
    return gold


def known_units(
    gold: Sequence[Sequence[int]] | None, units: Sequence[Unit], counts: Counter[str]
) -> list[set[int]] | None:
    """Returns the numbers that units have, for each question; counts the others, which have no text."""
    if gold is None:
        return None
    known = {each.number for each in units}
    counts["evidence_without_text"] += sum(len({*numbers} - known) for numbers in gold)
    return [known.intersection(numbers) for numbers in gold]


def count_questions_and_units(tokens: Any) -> tuple[int, int]:
    """Counts the questions and the units of a row of (T,) ids, which may be padded on the right."""
    ids = tokens.tolist()
    end = ids.index(EOS) if EOS in ids else len(ids)
    return ids[:end].count(BOS), ids[end:].count(BOS)


def by_number(units: Sequence[Unit], scores: Array, record: Any) -> list[float | None]:
    """Returns the probability of each turn or sentence of a record."""
    probabilities = {each.number: round(float(score), 6) for each, score in zip(units, scores, strict=True)}
    count = len(record.elements) if record.text is None else len(units)
    return list(map(probabilities.get, range(count)))


def passages(
    record: Any,
    units: Sequence[Unit],
    scores: Array,
    threshold: float,
    most: int | None = None,
    lines: Array | None = None,
) -> list[dict[str, Any]]:
    """Returns the passages of consecutive units whose probability reaches the threshold, best first, at most `most`.

    `lines`: (N,) probabilities of the units as lines; without them passages have no lines.
    """
    raw, results = raw_text(record), list[dict[str, Any]]()
    chosen = np.flatnonzero(scores >= threshold).tolist()
    for _, group in groupby(enumerate(chosen), key=lambda pair: pair[1] - pair[0]):
        own = [place for _, place in group]
        first, last = units[own[0]], units[own[-1]]
        roles = [] if record.roles is None else [record.roles[units[place].number] for place in own]
        best = [] if lines is None else sorted(own, key=lambda place: -lines[place])[:MOST_LINES]
        results.append(
            {
                "first": first.number,
                "last": last.number,
                "begin": first.begin,
                "end": last.end,
                "probability": round(float(scores[own].max()), 6),
                "lines": [units[place].number for place in best],
                "roles": [role for role in dict.fromkeys(roles) if role is not None],
                "text": raw[first.begin : last.end],
            }
        )
    return sorted(results, key=lambda each: -each["probability"])[:most]
