"""Baselines for evidence: rules with settings and thresholds that are chosen on validation documents, as predictions.

Legend: Q questions, N units.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from hat_fairseq.data import options
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import EmptyDocumentError
from hat_fairseq.scoring.baselines import Baseline
from hat_fairseq.units.evidence import (
    Decision,
    Evidence,
    EvidenceKind,
    EvidencePrediction,
    Threshold,
    Unit,
    answer_of,
    evidence_of,
    known_units,
    units_of,
)
from hat_fairseq.units.rules import Weights, WordScores, as_probabilities, smoothed, standardised, weights_of
from hat_fairseq.units.scores import average_precision

TRIED = 200  # thresholds, of each form
FORMS = ("passages", "lines")
ALL, WEIGHTED = "all", "weighted"
#: Settings of BM25: which words have weights; the standard deviation, in words, of a Gaussian over scores, 0 for none.
OF_WORDS = {"words": (ALL, WEIGHTED), "within": (0, 24, 48, 128, 256, 512)}

RuleSettings = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Reference:
    """A document with its questions.

    Attributes:
        units, texts: of the turns or sentences that have text, with roles.
        evidence, lines: for each question the numbers of the units that answer it; None where that is not known.
        number: of the document among all, on which random scores depend.
        weights: of the words of questions; None if no other questions are known.
        cosines: what rules of vectors need.
    """

    record: Evidence
    units: list[Unit]
    texts: list[str]
    evidence: list[set[int]] | None = None
    lines: list[set[int]] | None = None
    number: int = 0
    weights: Weights | None = None
    cosines: Any = None
    computed: dict[Any, np.ndarray] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, record: Record, settings: options.Settings | None = None) -> "Reference":
        """Divides a record into units; ValueError for running text without settings, or an empty document."""
        assert isinstance(record, Evidence)
        settings = settings or options.Settings(EvidenceKind.name)
        if record.text is not None and settings.splitter == "given":
            raise ValueError(
                f"{record.name} has running text, whose sentences are not known here: take text/SPLIT.jsonl of "
                "hat preprocess, beside whose folder text is bin, or give sentences"
            )
        prepared = EvidenceKind().prepare(record, settings, Counter())
        units, texts = units_of(prepared, settings), [each.text for each in prepared.texts[-1].sentences]
        is_known = record.evidence is not None or record.spans is not None
        evidence = evidence_of(record, units, Counter()) if is_known else None
        return cls(record, units, texts, evidence, known_units(record.lines, units, Counter()))

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

    @cached_property
    def words(self) -> WordScores:
        return WordScores(self.record.questions, self.texts)

    def once(self, *key: Any, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """Returns what was computed before for a key."""
        if key not in self.computed:
            self.computed[key] = compute()
        return self.computed[key]


def references_of(records: Iterable[Record], settings: options.Settings | None = None) -> tuple[list[Reference], int]:
    """Divides records into units; returns also how many were skipped, because they or a question have no text."""
    references, skipped = [], 0
    for record in records:
        try:
            references.append(Reference.of(record, settings))
        except EmptyDocumentError:
            skipped += 1
    return references, skipped


@dataclass(frozen=True)
class Choice:
    """How a rule chooses units, with its mean average precision and mean F1 on validation documents.

    `threshold`: a score from which on a unit is chosen, or if it is `relative` so far below the best of the question.
    """

    settings: RuleSettings
    threshold: float
    relative: bool
    precision: float = 0.0
    f1: float = 0.0

    def thresholds(self, scores: np.ndarray) -> np.ndarray:
        """Returns a score for each question of (Q, N) scores."""
        return scores.max(axis=1) - self.threshold if self.relative else np.full(len(scores), self.threshold)

    def __str__(self) -> str:
        settings = [f"{name} {value}" for name, value in self.settings.items()]
        form = "below the best" if self.relative else "or more"
        return ", ".join([*settings, f"threshold {self.threshold:.3g} {form}"])


@dataclass(frozen=True)
class Rule(Baseline):
    """A rule without training.

    Attributes:
        scores: of a document (Q, N), with a value for each of the settings.
        settings: the values to choose from.
    """

    scores: Callable[..., np.ndarray]
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def choices(self, weighted: bool) -> Iterator[RuleSettings]:
        """Yields all settings; without weights of words if none are known."""
        for values in product(*self.settings.values()):
            settings = dict(zip(self.settings, values, strict=True))
            if weighted or settings.get("words") != WEIGHTED:
                yield settings

    def fit(
        self, train: Iterable[str] | None, valid: Sequence[Reference]
    ) -> tuple[Callable[[Sequence[Reference]], list[EvidencePrediction]], dict[str, Any]]:
        """Chooses settings and thresholds for `passages` and `lines`; ValueError if no question has evidence.

        `train`: questions whose words say how rare a word is in questions, other ones than those of the references;
        None to weight all words of a question alike.
        """
        weights = None if train is None else weights_of(train)
        valid, chosen = with_weights(valid, weights), dict[str, Choice]()
        for name, form in zip(("evidence", "lines"), FORMS, strict=True):
            gold = [each.marks(name) for each in valid]
            if any(marks is not None and marks.any() for marks in gold):
                chosen[form] = choose(self, valid, gold)
        if not chosen:
            raise ValueError("no question has evidence, so no threshold can be chosen")
        return lambda test: [predict(self, each, chosen) for each in with_weights(test, weights)], chosen


def with_weights(references: Iterable[Reference], weights: Weights | None) -> list[Reference]:
    """Returns references with their numbers, and the weights of words."""
    return [replace(each, number=number, weights=weights) for number, each in enumerate(references)]


Marks = Sequence[np.ndarray | None]  # (Q, N) of each document; None where it is not known


def choose(rule: Rule, documents: Sequence[Reference], gold: Marks) -> Choice:
    """Chooses settings with the best mean average precision on validation documents, and then the threshold."""
    known = [(each, marks) for each, marks in zip(documents, gold, strict=True) if marks is not None and marks.any()]

    def precision(settings: RuleSettings) -> float:
        pairs = ((rule.scores(document, **settings), marks) for document, marks in known)
        return float(np.mean([average_precision(*each) for both in pairs for each in answered(*both)]))

    precisions = [(precision(each), each) for each in rule.choices(documents[0].weights is not None)]
    best, settings = max(precisions, key=lambda pair: pair[0])
    scores = [rule.scores(document, **settings) for document, _ in known]
    return replace(best_threshold(scores, [marks for _, marks in known]), settings=settings, precision=best)


def answered(scores: np.ndarray, marks: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns (N,) scores and marks of each question with evidence."""
    return [(row, right) for row, right in zip(scores, marks, strict=True) if right.any()]


def best_threshold(scores: Iterable[np.ndarray], gold: Iterable[np.ndarray]) -> Choice:
    """Finds the threshold with the best mean F1 over questions with evidence, of both forms.

    Args:
        scores, gold: (Q, N) of each document.
    """
    pairs = [pair for both in zip(scores, gold, strict=True) for pair in answered(*both)]
    absolute, relative = _best_of(pairs), _best_of([(row - row.max(), right) for row, right in pairs])
    is_relative = relative[1] > absolute[1]
    value, f1 = (-relative[0], relative[1]) if is_relative else absolute
    return Choice({}, value, is_relative, f1=f1)


def _best_of(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Returns the score from which on the mean F1 is best, and this F1; closer together where few units are chosen."""
    ranked = np.sort(np.concatenate([row for row, _ in pairs]))[::-1]
    values = np.unique(ranked[np.geomspace(1, len(ranked), TRIED).astype(int) - 1])
    means = np.mean([_f1s(row, right, values) for row, right in pairs], axis=0)
    best = int(np.argmax(means))
    return float(values[best]), float(means[best])


def _f1s(scores: np.ndarray, right: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Computes F1 for each of the values as threshold."""
    all_scores, right_scores = np.sort(scores), np.sort(scores[right])
    chosen, right_chosen = (len(each) - np.searchsorted(each, values) for each in (all_scores, right_scores))
    return np.asarray(2 * right_chosen / (chosen + len(right_scores)))


def predict(rule: Rule, reference: Reference, chosen: Mapping[str, Choice]) -> EvidencePrediction:
    """Returns the prediction that `hat predict` would write; without a choice for passages that of lines counts."""
    scores, thresholds = dict[str, np.ndarray](), dict[str, np.ndarray]()
    for name, choice in chosen.items():
        of_units = rule.scores(reference, **choice.settings)
        scores[name], thresholds[name] = as_probabilities(of_units), as_probabilities(choice.thresholds(of_units))
    (first, *_), answers = scores.values(), []
    for number, question in enumerate(reference.record.questions):
        passages, lines = (Threshold(float(thresholds[name][number])) if name in chosen else None for name in FORMS)
        columns = [scores.get(name, first)[number] for name in FORMS]
        of_units = np.stack([np.append(first[number].max(), each) for each in columns], axis=1)
        answers.append(answer_of(reference.record, reference.units, question, of_units, Decision(passages, lines)))
    return EvidencePrediction(reference.record.id, answers)


def _random(reference: Reference) -> np.ndarray:
    generator = np.random.default_rng([0, reference.number])
    return generator.random((len(reference.record.questions), len(reference.texts)))


def bm25(reference: Reference, words: str, within: int) -> np.ndarray:
    """Returns (Q, N) z scores of BM25; see `OF_WORDS`."""

    def compute() -> np.ndarray:
        scores = reference.words.bm25(reference.weights if words == WEIGHTED else None)
        return standardised(smoothed(scores, reference.words.middles, within))

    return reference.once("words", words, within, compute=compute)


RULES = {"random": Rule("random", _random), "bm25": Rule("BM25", bm25, OF_WORDS)}  # by the name of the option
