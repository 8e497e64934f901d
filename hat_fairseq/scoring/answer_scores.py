"""The common parts of the metrics of Natural Questions and TyDi QA: F1 of answers at the best threshold.

Answers are taken in the order of their scores, the highest first; those with equal scores are taken together. After
each score, precision is the value of the answers taken so far (1 for a right one) divided by their number, and recall
is the value divided by the number of questions that have an answer. Less than that score means "no answer".
"""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .report import Interval, bootstrap, digits, resampling

TARGETS = (0.5, 0.75, 0.9)  # precisions of recall at precision


class Outcome(NamedTuple):
    """Counts of one question, which are added up, and the score of its prediction."""

    gold: bool  # the question has an answer
    predicted: bool
    value: float  # 0 to 1
    score: float


@dataclass(frozen=True)
class BestFigures:
    """Figures (x 100) at the threshold with the best F1, recall at precisions, and F1 without any threshold."""

    f1: float
    precision: float
    recall: float
    threshold: float
    recall_at_precision: dict[str, float]
    f1_of_all: float

    def cells(self) -> list[str]:
        """F1, precision, recall and the threshold."""
        return [*(f"{figure:.2f}" for figure in (self.f1, self.precision, self.recall)), digits(self.threshold)]


class AnswerCurve:
    """Precision, recall and F1 of some questions, by default all of the test set, at all thresholds."""

    def __init__(self, outcomes: Sequence[Outcome], questions: Sequence[int] | None = None) -> None:
        order = sorted(range(len(outcomes)), key=lambda number: -outcomes[number].score)
        self.questions = np.array(order if questions is None else [questions[number] for number in order])
        table = np.array([outcomes[number] for number in order], dtype=float)
        self.counts, scores = table[:, :3], table[:, 3]
        self.last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))  # of each group of equal scores
        self.thresholds = scores[self.last]

    def points(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(3, scores): F1, precision and recall at each distinct score, the highest first; `weights` of questions."""
        counts = self.counts if weights is None else self.counts * weights[self.questions, None]
        gold, predicted, value = counts.cumsum(axis=0).T
        precision, recall = _ratio(value[self.last], predicted[self.last]), _ratio(value[self.last], gold[-1])
        return np.stack([_ratio(2 * precision * recall, precision + recall), precision, recall])

    def best(self) -> BestFigures:
        """The figures at the highest threshold with the best F1; zeros and the threshold 0 if no answer is right."""
        points = self.points()
        best = int(points[0].argmax())
        f1, precision, recall = (100 * points[:, best]).tolist()
        threshold = float(self.thresholds[best]) if f1 else 0.0
        reached = {f"{target:g}": 100 * points[2, points[1] >= target].max(initial=0.0) for target in TARGETS}
        return BestFigures(f1, precision, recall, threshold, reached, float(100 * points[0, -1]))


def best_f1(curves: Sequence[AnswerCurve], questions: int, samples: int, seed: int) -> Interval:
    """The mean over curves of the best F1 (x 100); in each resampled test set every curve has a threshold of its own.

    The curves are of disjoint questions of a test set of so many; one without any resampled question is left out.
    """

    def mean(drawn: np.ndarray) -> np.ndarray:
        weights = np.bincount(drawn, minlength=questions)
        present = [curve.points(weights)[0].max() for curve in curves if weights[curve.questions].any()]
        return np.array([100 * sum(present) / max(len(present), 1)])

    (interval,) = bootstrap(np.arange(questions), mean, samples, seed)
    return interval


def _ratio(numerators: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    """Quotients, 0 where the denominator is 0."""
    return numerators / np.where(denominators > 0, denominators, 1) * (denominators > 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the option that both metrics have."""
    text = "a question has an answer if N annotators gave one; 1 for parts with one annotation (default: %(default)s)"
    parser.add_argument("--annotators", type=int, default=2, metavar="N", help=text)


def check_annotations(annotations: Collection[Sequence[object]], args: argparse.Namespace) -> list[str]:
    """A note if some questions have fewer annotations than `--annotators`; ValueError if nothing can be scored."""
    if args.annotators < 1:
        raise ValueError(f"--annotators must be at least 1, not {args.annotators}")
    if not annotations:
        raise ValueError(f"{' '.join(args.references)}: no questions, so there is nothing to score")
    few = sum(len(each) < args.annotators for each in annotations)
    text = f"{few} of {len(annotations)} questions have fewer than {args.annotators} annotations, so they have no "
    return [f"{text}answer; --annotators 1 is for parts with one annotation"] if few else []


def signature(name: str, questions: int, args: argparse.Namespace) -> str:
    """The settings that the figures depend on."""
    resampled = resampling(args.bootstrap_samples, args.seed, "questions")
    settings = f"annotators: {args.annotators} | threshold: of the best F1 | bootstrap: {resampled}"
    return f"{name} | {settings} | questions: {questions}"
