"""Average precision, F1 and passage F1 of the turns or sentences that answer questions, joined by document id.

A unit is a turn or sentence with text. Over the questions that have evidence:

    average precision   mean of the precision at each unit that is evidence, in the order of the probabilities. Equal
                        ones stay in the order of the document. Units without probability, which were truncated, come
                        last in this order; the mean over questions
    F1                  2 TP / (2 TP + FP + FN) of the units whose probability reaches the threshold of the
                        prediction; the mean over questions

and over the passages of all questions, also of those without evidence:

    passage precision   share of the predicted passages of whose units at least half are evidence
    passage recall      share of the gold passages of whose units at least half are in predicted passages
    passage F1          their harmonic mean

A gold passage is a maximal run of consecutive units that are evidence. Half, because with any overlap the whole
document as one passage would be right for every question. 0 / 0 is 0.

Legend: D documents, Q questions, N units, F figures.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hat_fairseq.scoring.report import Interval, Report, Signature, bootstrap, check_counts, resampling

HALF = 0.5  # share of a passage that has to be evidence, or predicted
FIGURES = ("average precision", "F1", "passage precision", "passage recall", "passage F1")


@dataclass(frozen=True)
class Found:
    """What a system finds for a question: a probability for each turn or sentence, or None, and first and last ones."""

    probabilities: Sequence[float | None]
    passages: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class System:
    """What a system finds for the questions of a document."""

    threshold: float
    questions: Sequence[Found]


def average_precision(scores: np.ndarray, gold: np.ndarray) -> float:
    """Computes the mean of the precision at each (N,) True unit, in the order of the scores; ties stay in order."""
    ranked = gold[np.argsort(-scores, kind="stable")]
    precisions = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    return float(precisions[ranked].mean())


def f1(chosen: np.ndarray, gold: np.ndarray) -> float:
    """Computes the F1 of (N,) units, of which one at least is chosen or gold."""
    return float(2 * (chosen & gold).sum() / (chosen.sum() + gold.sum()))


def gold_passages(gold: np.ndarray) -> list[np.ndarray]:
    """Returns the places of each maximal run of (N,) True units."""
    places = np.flatnonzero(gold)
    return np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []


def count_passages(gold: np.ndarray, predicted: Sequence[np.ndarray]) -> tuple[int, int, int, int]:
    """Counts predicted passages and the right ones among them, gold passages and the found ones among them.

    Args:
        gold: (N,) which units are evidence.
        predicted: (N,) for each predicted passage, which units are in it.
    """
    right = sum(bool(inside.any()) and gold[inside].mean() >= HALF for inside in predicted)
    expected, covered = gold_passages(gold), np.any([np.zeros_like(gold), *predicted], axis=0)
    return len(predicted), right, len(expected), sum(covered[places].mean() >= HALF for places in expected)


@dataclass(frozen=True, kw_only=True)
class EvidenceReport(Report):
    """The `FIGURES` (x 100) of one system with intervals, and their differences from the first system's."""

    differences: dict[str, Interval] | None = None  # None for the first system


def evidence(
    hypotheses: Sequence[System],
    references: Sequence[Sequence[Collection[int]]],
    *,
    units: Sequence[Sequence[int]] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> EvidenceReport:
    """Scores what a system finds in documents for questions; `compare` does so for several systems.

    Args:
        hypotheses: of each document, what is found for its questions.
        references: of each document and question, the numbers from 0 of the turns or sentences that are evidence.
        units: of each document, the numbers of the turns or sentences that count; None for all of them.
        bootstrap_samples, seed: of the resampling of documents; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of documents or questions than in the references, numbers of turns that a document
            does not have, or no question with evidence.
    """
    options: dict[str, Any] = {"units": units, "bootstrap_samples": bootstrap_samples, "seed": seed}
    (report,) = compare({"": hypotheses}, references, **options).values()
    return report


def compare(
    systems: Mapping[str, Sequence[System]],
    references: Sequence[Sequence[Collection[int]]],
    *,
    units: Sequence[Sequence[int]] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> dict[str, EvidenceReport]:
    """Returns the reports of systems by their names, with paired differences from the first system.

    The other arguments, and errors, are those of `evidence`.
    """
    for hypotheses in systems.values():
        check_counts(hypotheses=hypotheses, references=references, units=units)
    first = next(iter(systems.values()))
    numbers = list(map(_all_units, first)) if units is None else [list(each) for each in units]
    gold = [_gold(*each) for each in zip(range(1, len(numbers) + 1), references, numbers, strict=True)]
    answered, asked = sum(int(each.any(axis=1).sum()) for each in gold), sum(map(len, references))
    if not answered:
        raise ValueError("no question has evidence, so there is nothing to score")
    sums = {
        name: np.array([sums_of(*each) for each in zip(gold, numbers, system, strict=True)])
        for name, system in systems.items()
    }
    figures, differences = _intervals(sums, bootstrap_samples, seed)
    settings = {
        "bootstrap": resampling(bootstrap_samples, seed, "documents"),
        "questions": f"{answered} with evidence of {asked}",
        "documents": str(len(references)),
    }
    return {
        name: EvidenceReport(
            scores=dict(zip(FIGURES, row, strict=True)),
            signature=Signature(settings, "evidence"),
            differences=dict(zip(FIGURES, differences[name], strict=True)) if name in differences else None,
        )
        for name, row in figures.items()
    }


def _all_units(system: System) -> list[int]:
    return list(range(max((len(each.probabilities) for each in system.questions), default=0)))


def _gold(number: int, questions: Sequence[Collection[int]], units: Sequence[int]) -> np.ndarray:
    """(Q, N): is a unit evidence."""
    if extra := sorted({each for question in questions for each in question} - set(units)):
        raise ValueError(f"document {number} has no turn or sentence {extra[0]}, which is evidence")
    marks = [[unit in question for unit in units] for question in questions]
    return np.array(marks, dtype=bool).reshape(-1, len(units))


def sums_of(gold: np.ndarray, units: Sequence[int], system: System) -> np.ndarray:
    """Computes what figures are made of: (7,) sums over the questions of a document.

    Questions with evidence, their average precision, and their F1; predicted passages and the right ones among them,
    gold passages and the found ones among them.

    Args:
        gold: (Q, N) is a unit evidence.
        units: (N,) their numbers.

    Raises:
        ValueError: other numbers of questions or probabilities.
    """
    sums, numbers = np.zeros(7), np.array(units)
    if len(system.questions) != len(gold):
        raise ValueError(f"{len(system.questions)} questions are answered, and the document has {len(gold)}")
    for right, answer in zip(gold, system.questions, strict=True):
        if units and len(answer.probabilities) <= max(units):
            raise ValueError(f"{len(answer.probabilities)} probabilities, and the document has a turn {max(units)}")
        scores = np.array([-1 if (p := answer.probabilities[number]) is None else p for number in numbers])
        if right.any():
            sums[:3] += 1, average_precision(scores, right), f1((scores >= 0) & (scores >= system.threshold), right)
        predicted = [(first <= numbers) & (numbers <= last) for first, last in answer.passages]
        sums[3:] += count_passages(right, predicted)
    return sums


def figures_of(sums: np.ndarray) -> np.ndarray:
    """Computes the `FIGURES`, x 100, from (D, 7) sums of documents."""
    questions, precisions, f1s, predicted, right, expected, recalled = sums.sum(axis=0)
    precision, recall = right / max(predicted, 1), recalled / max(expected, 1)
    harmonic = 2 * precision * recall / (precision + recall) if right else 0.0
    return 100 * np.array([precisions / max(questions, 1), f1s / max(questions, 1), precision, recall, harmonic])


def _intervals(
    systems: Mapping[str, np.ndarray], samples: int, seed: int
) -> tuple[dict[str, list[Interval]], dict[str, list[Interval]]]:
    """Computes the `FIGURES` of each system, and the paired differences of the others from the first.

    Args:
        systems: (D, 7) sums of the same documents, by name.
        samples, seed: see `bootstrap`.
    """
    first, *others = systems
    pairs = {name: np.stack([systems[first], systems[name]], axis=1) for name in others}
    return (
        {name: bootstrap(sums, figures_of, samples, seed) for name, sums in systems.items()},
        {name: bootstrap(pair, _difference_of, samples, seed) for name, pair in pairs.items()},
    )


def _difference_of(drawn: np.ndarray) -> np.ndarray:
    return figures_of(drawn[:, 1]) - figures_of(drawn[:, 0])
