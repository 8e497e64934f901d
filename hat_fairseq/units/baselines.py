"""Baselines for evidence: rules with settings and thresholds that are chosen on validation documents, as predictions.

Legend: Q questions, N units.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hat_fairseq.data.options import Settings
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.units.evidence import (
    Evidence,
    EvidenceKind,
    EvidencePrediction,
    Unit,
    by_number,
    evidence_of,
    lines_of,
    passages,
    units_of,
)
from hat_fairseq.units.rules import Document, QuestionWords, Rule, as_probabilities
from hat_fairseq.units.scores import average_precision

THRESHOLDS = 200  # that are tried, of each form


@dataclass(frozen=True)
class Reference:
    """A document with its questions.

    Attributes:
        units, texts: of the turns or sentences that have text, with roles.
        evidence, lines: for each question the numbers of the units that answer it; None where that is not known.
    """

    record: Evidence
    units: list[Unit]
    texts: list[str]
    evidence: list[set[int]] | None
    lines: list[set[int]] | None

    @classmethod
    def of(cls, record: Record, settings: Settings | None = None) -> "Reference":
        """Divides a record into units; ValueError for running text without settings, or an empty document."""
        assert isinstance(record, Evidence)
        settings = settings or Settings(EvidenceKind.name)
        if record.text is not None and settings.splitter == "given":
            raise ValueError(
                f"{record.name} has running text, whose sentences are not known here: take text/SPLIT.jsonl of "
                "hat preprocess, beside whose folder text is bin, or give sentences"
            )
        prepared = EvidenceKind().prepare(record, settings, Counter())
        units, texts = units_of(prepared, settings), [each.text for each in prepared.texts[-1].sentences]
        is_known = record.evidence is not None or record.spans is not None
        evidence = evidence_of(record, units, Counter()) if is_known else None
        return cls(record, units, texts, evidence, lines_of(record, units, Counter()))

    @property
    def count(self) -> int:
        """Returns the number of turns or sentences, with and without text."""
        return len(self.units if self.record.text is not None else self.record.elements or ())

    @property
    def numbers(self) -> list[int]:
        """Returns the numbers of the turns or sentences that have text."""
        return [unit.number for unit in self.units]

    def marks(self, name: str) -> np.ndarray | None:
        """Returns (Q, N): is a unit one of `evidence` or `lines`; None where that is not known."""
        gold: list[set[int]] | None = getattr(self, name)
        if gold is None:
            return None
        return np.array([[number in numbers for number in self.numbers] for numbers in gold], dtype=bool)


def references_of(records: Iterable[Record], settings: Settings | None = None) -> tuple[list[Reference], int]:
    """Divides records into units; returns also how many were skipped, because they or a question have no text."""
    references, skipped = [], 0
    for record in records:
        try:
            references.append(Reference.of(record, settings))
        except EmptyDocumentError:
            skipped += 1
    return references, skipped


@dataclass(frozen=True)
class Threshold:
    """From which score on a unit is chosen: a score, or if it is `relative` so far below the best of the question."""

    value: float
    relative: bool

    def of(self, scores: np.ndarray) -> np.ndarray:
        """Returns a score for each question of (Q, N) scores."""
        if self.relative:
            return np.asarray(scores.max(axis=1) - self.value)
        return np.full(len(scores), self.value)

    def __str__(self) -> str:
        return f"{self.value:.3g} {'below the best' if self.relative else 'or more'}"


@dataclass(frozen=True)
class Choice:
    """Settings and threshold of a rule, with their mean average precision and mean F1 on validation documents."""

    settings: Mapping[str, Any]
    threshold: Threshold
    precision: float
    f1: float

    def __str__(self) -> str:
        settings = [f"{name} {value}" for name, value in self.settings.items()]
        return ", ".join([*settings, f"threshold {self.threshold}"])


Gold = Sequence[np.ndarray | None]  # (Q, N) of each document; None where it is not known


def choose(rule: Rule, documents: Sequence[Document], gold: Gold) -> Choice:
    """Chooses settings with the best mean average precision on validation documents, and then the threshold.

    ValueError if no question has evidence.
    """
    known = [(each, marks) for each, marks in zip(documents, gold, strict=True) if marks is not None and marks.any()]
    if not known:
        raise ValueError("no question has evidence, so no threshold can be chosen")

    def precision(settings: Mapping[str, Any]) -> float:
        pairs = ((rule.scores(document, **settings), marks) for document, marks in known)
        return float(np.mean([average_precision(*each) for both in pairs for each in answered(*both)]))

    precisions = [(precision(each), each) for each in rule.choices(documents[0].weights is not None)]
    best, settings = max(precisions, key=lambda pair: pair[0])
    scores = [rule.scores(document, **settings) for document, _ in known]
    threshold, f1 = best_threshold(scores, [marks for _, marks in known])
    return Choice(settings, threshold, best, f1)


def answered(scores: np.ndarray, marks: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns (N,) scores and marks of each question with evidence."""
    return [(row, right) for row, right in zip(scores, marks, strict=True) if right.any()]


def best_threshold(scores: Iterable[np.ndarray], gold: Iterable[np.ndarray]) -> tuple[Threshold, float]:
    """Finds the threshold with the best mean F1 over questions with evidence, of both forms, and this F1.

    ValueError if no question has evidence.

    Args:
        scores, gold: (Q, N) of each document.
    """
    pairs = [pair for both in zip(scores, gold, strict=True) for pair in answered(*both)]
    if not pairs:
        raise ValueError("no question has evidence, so no threshold can be chosen")
    absolute = _best_of([(row, right) for row, right in pairs])
    relative = _best_of([(row - row.max(), right) for row, right in pairs])
    if relative[1] > absolute[1]:
        return Threshold(-relative[0], True), relative[1]
    return Threshold(absolute[0], False), absolute[1]


def _best_of(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Returns the score from which on the mean F1 is best, and this F1; closer together where few units are chosen."""
    ranked = np.sort(np.concatenate([row for row, _ in pairs]))[::-1]
    values = np.unique(ranked[np.geomspace(1, len(ranked), THRESHOLDS).astype(int) - 1])
    means = np.mean([_f1s(row, right, values) for row, right in pairs], axis=0)
    best = int(np.argmax(means))
    return float(values[best]), float(means[best])


def _f1s(scores: np.ndarray, right: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Computes F1 for each of the values as threshold."""
    all_scores, right_scores = np.sort(scores), np.sort(scores[right])
    chosen, right_chosen = (len(each) - np.searchsorted(each, values) for each in (all_scores, right_scores))
    return np.asarray(2 * right_chosen / (chosen + len(right_scores)))


def documents_of(
    references: Sequence[Reference], weights: QuestionWords | None, cosines: Sequence[Any] | None = None
) -> list[Document]:
    """Returns what the rules know of references."""
    return [
        Document(number, each.record.questions, each.texts, weights, None if cosines is None else cosines[number])
        for number, each in enumerate(references)
    ]


@dataclass(frozen=True)
class Baseline:
    """A rule as a system.

    Attributes:
        title: of the rule.
        passages, lines: how it was chosen for each; None for what the validation documents do not have.
        predictions: of each document.
    """

    title: str
    passages: Choice | None
    lines: Choice | None
    predictions: list[EvidencePrediction]

    @property
    def chosen(self) -> str:
        """Returns the choices as one line."""
        parts = {"": self.passages, "lines: ": self.lines}
        return "; ".join(f"{name}{choice}" for name, choice in parts.items() if choice is not None)

    def to_json(self) -> dict[str, Any]:
        """Returns the choices as a JSON object."""
        return {name: asdict(each) for name in ("passages", "lines") if (each := getattr(self, name)) is not None}


def baselines(
    rules: Sequence[Rule],
    references: Sequence[Reference],
    valid: Sequence[Reference],
    *,
    questions: Iterable[str] | None = None,
    cosines: tuple[Sequence[Any], Sequence[Any]] | None = None,
) -> list[Baseline]:
    """Predicts references by rules.

    Args:
        valid: documents on which settings and thresholds are chosen.
        questions: those whose words say how rare a word is in questions, other ones than those of the references; None
            to weight all words of a question alike.
        cosines: of the references, and of `valid`, for rules of vectors.
    Raises:
        ValueError: no question of `valid` has evidence.
    """
    weights = None if questions is None else QuestionWords(questions)
    test, chosen_on = (
        documents_of(each, weights, None if cosines is None else cosines[place])
        for place, each in enumerate((references, valid))
    )
    return [_baseline(rule, (references, test), (valid, chosen_on)) for rule in rules]


Both = tuple[Sequence[Reference], Sequence[Document]]


def _baseline(rule: Rule, test: Both, valid: Both) -> Baseline:
    choices = dict[str, Choice | None]()
    for name in ("evidence", "lines"):
        gold = [each.marks(name) for each in valid[0]]
        is_known = any(marks is not None and marks.any() for marks in gold)
        choices[name] = choose(rule, valid[1], gold) if is_known else None
    of_passages, of_lines = choices["evidence"], choices["lines"]
    if of_passages is None and of_lines is None:
        raise ValueError("no question has evidence, so no threshold can be chosen")
    predictions = [predict(*each, rule, of_passages, of_lines) for each in zip(*test, strict=True)]
    return Baseline(rule.title, of_passages, of_lines, predictions)


def predict(
    reference: Reference, document: Document, rule: Rule, of_passages: Choice | None, of_lines: Choice | None
) -> EvidencePrediction:
    """Returns the prediction that `hat predict` would write; without a choice for passages that of lines counts."""
    first = of_passages or of_lines
    assert first is not None
    scores, thresholds = _probabilities(document, rule, first)
    lines = None if of_lines is None else _probabilities(document, rule, of_lines)
    answers = []
    for number, question in enumerate(reference.record.questions):
        own, threshold = scores[number], float(thresholds[number])
        answer: dict[str, Any] = {
            "question": question,
            "answered": True,
            "answer_probability": float(own.max()),
            "passages": passages(
                reference.record, reference.units, own, threshold, lines=None if lines is None else lines[0][number]
            ),
            "threshold": threshold,
            "probabilities": by_number(reference.units, own, reference.record),
        }
        if lines is not None:
            answer["line_threshold"] = float(lines[1][number])
            answer["line_probabilities"] = by_number(reference.units, lines[0][number], reference.record)
        answers.append(answer)
    return EvidencePrediction(reference.record.id, answers)


def _probabilities(document: Document, rule: Rule, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
    """Returns (Q, N) probabilities, and (Q,) thresholds."""
    scores = rule.scores(document, **choice.settings)
    return as_probabilities(scores), as_probabilities(choice.threshold.of(scores))
