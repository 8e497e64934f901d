"""How well turns or sentences that answer questions are found: passages, lines, and whether there is an answer.

A unit is a turn or sentence with text. Over the questions that have evidence:

    average precision   mean of the precision at each unit that is evidence, in the order of the probabilities. Equal
                        ones stay in the order of the document. Units without probability, which were truncated, come
                        last in this order; the mean over questions
    F1                  2 TP / (2 TP + FP + FN) of the units whose probability reaches the threshold of the question;
                        the mean over questions

and over the passages of all questions, also of those without evidence:

    passage precision   share of the predicted passages of whose units at least half are evidence
    passage recall      share of the gold passages of whose units at least half are in predicted passages
    passage F1          their harmonic mean

A gold passage is a maximal run of consecutive units that are evidence. Half, because with any overlap the whole
document as one passage would be right for every question. 0 / 0 is 0. Of lines, the few units that support an answer:

    line average precision, line F1     the same of lines, over the questions that have lines

and of the probabilities that a document answers a question, where some questions have evidence or lines and some not:

    answer AUROC                how often a question with an answer has a greater probability than one without; of
                                equal ones half
    false alarms at 90 % recall share of the questions without an answer whose probability is as great as that of 90 %
                                of the others

Legend: D documents, Q questions, N units, F figures.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hat_fairseq.scoring.report import Interval, Report, Signature, bootstrap, check_counts, resampling

HALF = 0.5  # share of a passage that has to be evidence, or predicted
RECALL = 0.9  # of the questions with an answer, for thresholds and false alarms; it is in the name of the figure
FIGURES = ("average precision", "F1", "passage precision", "passage recall", "passage F1")
LINE_FIGURES = ("line average precision", "line F1")
ANSWER_FIGURES = ("answer AUROC", "false alarms at 90 % recall")
ALL_FIGURES = FIGURES + LINE_FIGURES + ANSWER_FIGURES
SUMS = 10  # of a document; see `sums_of`

Numbers = Sequence[Collection[int]]  # of units, for each question


@dataclass(frozen=True)
class Found:
    """What a system finds for a question.

    Attributes:
        probabilities: one for each turn or sentence, None for one that was truncated.
        threshold: from which probability on a unit is chosen.
        passages: first and last unit of each.
        line_probabilities, line_threshold: the same of lines; None: those above.
        answer_probability: of the document answering the question; None: the greatest of all units.
    """

    probabilities: Sequence[float | None]
    threshold: float
    passages: Sequence[tuple[int, int]] = ()
    line_probabilities: Sequence[float | None] | None = None
    line_threshold: float | None = None
    answer_probability: float | None = None

    @property
    def of_lines(self) -> tuple[Sequence[float | None], float]:
        """Returns probabilities and threshold of lines."""
        if self.line_probabilities is None or self.line_threshold is None:
            return self.probabilities, self.threshold
        return self.line_probabilities, self.line_threshold

    @property
    def answered(self) -> float:
        """Returns the probability that the document answers the question."""
        if self.answer_probability is not None:
            return self.answer_probability
        return max((each for each in self.probabilities if each is not None), default=0.0)


System = Sequence[Found]  # what a system finds for the questions of a document


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


def auroc(scores: np.ndarray, answered: np.ndarray) -> float:
    """Computes the area under the ROC curve of (Q,) scores; 0.5 if all questions are answered, or none."""
    right, wrong = np.sort(scores[answered]), np.sort(scores[~answered])
    if not len(right) or not len(wrong):
        return 0.5
    below, up_to = (np.searchsorted(wrong, right, side=side) for side in ("left", "right"))  # type: ignore[call-overload]
    return float((below + up_to).mean() / (2 * len(wrong)))


def false_alarms(scores: np.ndarray, answered: np.ndarray) -> float:
    """Computes the share of the (Q,) scores of questions without answer that reach `RECALL` of the others; 0 of 0."""
    right, wrong = np.sort(scores[answered])[::-1], scores[~answered]
    if not len(right) or not len(wrong):
        return 0.0
    return float((wrong >= right[math.ceil(RECALL * len(right)) - 1]).mean())


@dataclass(frozen=True, kw_only=True)
class EvidenceReport(Report):
    """The figures (x 100) of one system with intervals, and their differences from the first system's."""

    differences: dict[str, Interval] | None = None  # None for the first system


def evidence(
    hypotheses: Sequence[System],
    references: Sequence[Numbers | None],
    *,
    lines: Sequence[Numbers | None] | None = None,
    units: Sequence[Sequence[int]] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> EvidenceReport:
    """Scores what a system finds in documents for questions; `compare` does so for several systems.

    Args:
        hypotheses: of each document, what is found for its questions.
        references: of each document and question, the numbers from 0 of the turns or sentences that are evidence; None
            for a document whose evidence is not known.
        lines: the same of lines; None if they are not known.
        units: of each document, the numbers of the turns or sentences that count; None for all of them.
        bootstrap_samples, seed: of the resampling of documents; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of documents or questions than in the references, numbers of turns that a document
            does not have, or no question with evidence.
    """
    options: dict[str, Any] = {"units": units, "bootstrap_samples": bootstrap_samples, "seed": seed}
    (report,) = compare({"": hypotheses}, references, lines=lines, **options).values()
    return report


@dataclass(frozen=True)
class GoldUnits:
    """What is right for the questions of a document.

    Attributes:
        units: (N,) their numbers.
        evidence, lines: (Q, N) is a unit one; None where that is not known.
    """

    units: np.ndarray
    evidence: np.ndarray | None
    lines: np.ndarray | None

    @property
    def answered(self) -> np.ndarray:
        """Returns (Q,): has a question evidence or lines."""
        return np.any([each.any(axis=1) for each in (self.evidence, self.lines) if each is not None], axis=0)


def compare(
    systems: Mapping[str, Sequence[System]],
    references: Sequence[Numbers | None],
    *,
    lines: Sequence[Numbers | None] | None = None,
    units: Sequence[Sequence[int]] | None = None,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> dict[str, EvidenceReport]:
    """Returns the reports of systems by their names, with paired differences from the first system.

    The other arguments, and errors, are those of `evidence`. Figures of lines and of answers are there if the
    references have what they need.
    """
    for hypotheses in systems.values():
        check_counts(hypotheses=hypotheses, references=references, units=units, lines=lines)
    numbers = list(map(_all_units, next(iter(systems.values())))) if units is None else [list(each) for each in units]
    known = zip(numbers, references, lines or [None] * len(references), strict=True)
    gold = [_gold(number, *each) for number, each in enumerate(known, start=1)]
    answered = np.concatenate([each.answered for each in gold])
    if not answered.any():
        raise ValueError("no question has evidence, so there is nothing to score")
    names = [
        *(FIGURES if any(each.evidence is not None for each in gold) else ()),
        *(LINE_FIGURES if any(each.lines is not None for each in gold) else ()),
        *(() if answered.all() else ANSWER_FIGURES),
    ]
    widest = max(len(each.answered) for each in gold)
    rows = {
        name: np.array([parts_of_figures(*each, widest) for each in zip(gold, system, strict=True)])
        for name, system in systems.items()
    }
    figures = {name: bootstrap(own, figures_of, bootstrap_samples, seed) for name, own in rows.items()}
    first, *others = rows
    pairs = {name: np.stack([rows[first], rows[name]], axis=1) for name in others}
    differences = {name: bootstrap(pair, _difference_of, bootstrap_samples, seed) for name, pair in pairs.items()}
    settings = {
        "bootstrap": resampling(bootstrap_samples, seed, "documents"),
        "questions": f"{answered.sum()} with evidence of {len(answered)}",
        "documents": str(len(references)),
    }
    return {
        name: EvidenceReport(
            scores=_named(names, row),
            signature=Signature(settings, "evidence"),
            differences=_named(names, differences[name]) if name in differences else None,
        )
        for name, row in figures.items()
    }


def _named(names: Sequence[str], figures: Sequence[Interval]) -> dict[str, Interval]:
    return {name: figure for name, figure in zip(ALL_FIGURES, figures, strict=True) if name in names}


def _all_units(system: System) -> list[int]:
    return list(range(max((len(each.probabilities) for each in system), default=0)))


def _gold(number: int, units: Sequence[int], evidence: Numbers | None, lines: Numbers | None) -> GoldUnits:
    if evidence is None and lines is None:
        raise ValueError(f"document {number} has neither evidence nor lines")
    if evidence is not None and lines is not None and len(evidence) != len(lines):
        raise ValueError(f"document {number} has evidence of {len(evidence)} questions, and lines of {len(lines)}")
    return GoldUnits(np.array(units, dtype=int), *(_marks(number, units, each) for each in (evidence, lines)))


def _marks(number: int, units: Sequence[int], questions: Numbers | None) -> np.ndarray | None:
    """(Q, N): is a unit one of the numbers."""
    if questions is None:
        return None
    if extra := sorted({each for question in questions for each in question} - set(units)):
        raise ValueError(f"document {number} has no turn or sentence {extra[0]}, which is evidence")
    marks = [[unit in question for unit in units] for question in questions]
    return np.array(marks, dtype=bool).reshape(-1, len(units))


def parts_of_figures(gold: GoldUnits, system: System, widest: int) -> np.ndarray:
    """Computes what figures are made of, for a document: its sums, and for each question whether it has an answer.

    Args:
        widest: most questions of a document; questions that are not there have NaN.
    Returns:
        (SUMS + 2 * widest,).
    Raises:
        ValueError: other numbers of questions or probabilities.
    """
    answers = np.full((2, widest), np.nan)
    row = sums_of(gold, system)
    answers[0, : len(system)] = gold.answered
    answers[1, : len(system)] = [each.answered for each in system]
    return np.concatenate([row, answers.ravel()])


def sums_of(gold: GoldUnits, system: System) -> np.ndarray:
    """Computes (SUMS,) sums over the questions of a document.

    Questions with evidence, their average precision, and their F1; predicted passages and the right ones among them,
    gold passages and the found ones among them; questions with lines, their average precision, and their F1.
    """
    sums = np.zeros(SUMS)
    if len(system) != len(gold.answered):
        raise ValueError(f"{len(system)} questions are answered, and the document has {len(gold.answered)}")
    for number, answer in enumerate(system):
        if gold.evidence is not None:
            right = gold.evidence[number]
            sums[:3] += _figures_of_units(right, gold.units, answer.probabilities, answer.threshold)
            predicted = [(first <= gold.units) & (gold.units <= last) for first, last in answer.passages]
            sums[3:7] += count_passages(right, predicted)
        if gold.lines is not None:
            sums[7:] += _figures_of_units(gold.lines[number], gold.units, *answer.of_lines)
    return sums


def _figures_of_units(
    gold: np.ndarray, units: np.ndarray, probabilities: Sequence[float | None], threshold: float
) -> tuple[float, float, float]:
    """Returns 1, average precision and F1 of a question; zeros for one without (N,) units that are right."""
    if len(units) and len(probabilities) <= units.max():
        raise ValueError(f"{len(probabilities)} probabilities, and the document has a turn {units.max()}")
    if not gold.any():
        return 0.0, 0.0, 0.0
    scores = np.array([-1 if (p := probabilities[number]) is None else p for number in units])
    return 1.0, average_precision(scores, gold), f1((scores >= 0) & (scores >= threshold), gold)


def figures_of(rows: np.ndarray) -> np.ndarray:
    """Computes `ALL_FIGURES`, x 100, from the (D, F) rows of documents; see `parts_of_figures`."""
    questions, precisions, f1s, predicted, right, expected, recalled, lines, *of_lines = rows[:, :SUMS].sum(axis=0)
    precision, recall = right / max(predicted, 1), recalled / max(expected, 1)
    harmonic = 2 * precision * recall / (precision + recall) if right else 0.0
    answered, scores = np.moveaxis(rows[:, SUMS:].reshape(len(rows), 2, -1), 1, 0)
    is_there = ~np.isnan(answered)
    answers = scores[is_there], answered[is_there] > 0
    of_units = [precisions / max(questions, 1), f1s / max(questions, 1), precision, recall, harmonic]
    return 100 * np.array(
        [*of_units, *(each / max(lines, 1) for each in of_lines), auroc(*answers), false_alarms(*answers)]
    )


def _difference_of(drawn: np.ndarray) -> np.ndarray:
    return figures_of(drawn[:, 1]) - figures_of(drawn[:, 0])
