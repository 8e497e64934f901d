"""Accuracy and F1 of predicted labels: one for a document, or one for each of its segments or words, pooled.

Per class: precision = tp / predicted, recall = tp / support, F1 = 2 tp / (predicted + support), 0 where the denominator
is 0. Macro F1 is the mean of F1 over the classes that occur among references or predictions; micro F1 is F1 of the sums
over classes. These are scikit-learn's definitions. Where every element has a prediction, micro F1 is the accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hat_fairseq.scoring.bootstrap import Interval, bootstrap_totals

Labels = Sequence[str | None]  # of a document; None: this element was cut off before the model saw it

FIGURES = ("accuracy", "micro F1", "macro F1")


@dataclass(frozen=True)
class ClassScore:
    """Precision, recall and F1 of one class (x 100), and how often it occurs among references and predictions."""

    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


@dataclass(frozen=True)
class ClassificationReport:
    """Figures (x 100) with intervals, a row per class, and what they were computed from."""

    figures: dict[str, Interval]
    classes: dict[str, ClassScore]
    documents: int
    elements: int
    missing: int  # elements without prediction: they count as wrong
    signature: str


def score_labels(
    hypotheses: Mapping[str, Labels], references: Mapping[str, Sequence[str]], samples: int = 1000, seed: int = 0
) -> ClassificationReport:
    """Score labels, joined by document id.

    Args:
        hypotheses, references: the labels of each document, as many in one as in the other.
        samples, seed: of the bootstrap over documents; 0 samples for no intervals.

    Raises:
        ValueError: no documents.
    """
    names = sorted(
        {label for labels in (*references.values(), *hypotheses.values()) for label in labels if label is not None}
    )
    number = {name: index for index, name in enumerate(names)}
    # Per document: true positives, predictions and support of each class, side by side, and its number of elements.
    counts = np.zeros((len(references), 3 * len(names) + 1), dtype=np.int64)
    missing = 0
    for row, (identifier, gold) in zip(counts, references.items(), strict=True):
        hits, predicted, support = row[:-1].reshape(3, -1)
        row[-1] = len(gold)
        for guess, right in zip(hypotheses[identifier], gold, strict=True):
            support[number[right]] += 1
            if guess is None:
                missing += 1
                continue
            predicted[number[guess]] += 1
            hits[number[right]] += guess == right
    figures = bootstrap_totals(counts, _figures, samples, seed)
    totals = counts.sum(axis=0)
    _, predictions, supports = totals[:-1].reshape(3, -1).tolist()
    rows = zip(names, *_precision_recall_f1(totals).tolist(), supports, predictions, strict=True)
    signature = {
        "labels": "one a document" if all(len(gold) == 1 for gold in references.values()) else "pooled over documents",
        "F1": "of the classes found among references and hypotheses",
        "bootstrap": f"{samples} of documents (95 %, seed {seed})" if samples else "none",
        "classes": len(names),
        "documents": len(references),
    }
    return ClassificationReport(
        figures=dict(zip(FIGURES, figures, strict=True)),
        classes={name: ClassScore(*scores) for name, *scores in rows},
        documents=len(references),
        elements=int(totals[-1]),
        missing=missing,
        signature=" | ".join(f"{key}: {value}" for key, value in signature.items()),
    )


def _precision_recall_f1(totals: np.ndarray) -> np.ndarray:
    """(3 K + 1,) totals -> (3, K) x 100."""
    hits, predicted, support = totals[:-1].reshape(3, -1)
    return 100 * hits * [[1], [1], [2]] / np.maximum([predicted, support, predicted + support], 1)


def _figures(totals: np.ndarray) -> np.ndarray:
    """(3 K + 1,) totals -> accuracy, micro F1 and macro F1, x 100."""
    hits, predicted, support = totals[:-1].reshape(3, -1)
    occurs = (predicted + support) > 0  # in a resampled test set a class may be absent
    micro = 200 * hits.sum() / (predicted.sum() + support.sum())
    return np.array([100 * hits.sum() / totals[-1], micro, _precision_recall_f1(totals)[2, occurs].mean()])
