"""Accuracy, micro and macro F1 of predicted labels, with a table of classes and a signature.

A document has one label, or one for each of its segments or words; these are pooled.

Per class: precision = tp / predicted, recall = tp / support, F1 = 2 tp / (predicted + support), 0 where the denominator
is 0. Macro F1 is the mean of F1 over the classes that occur among references or predictions; micro F1 is F1 of the sums
over classes. These are scikit-learn's definitions. Where every element has a prediction, micro F1 is the accuracy.
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hat_fairseq.scoring.files import by_id, check_joined, json_lines
from hat_fairseq.scoring.report import Interval, Report, aligned, bootstrap, resampling

HYPOTHESES = ".jsonl with id and label (or labels), as hat predict writes it"
REFERENCES = "text/SPLIT.jsonl of hat preprocess, or your own"
SEVERAL_REFERENCES = False

Labels = tuple[str | None, ...]  # of a document; None: this element was truncated before the model saw it

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
    hypotheses: Mapping[str, Labels], references: Mapping[str, Labels], samples: int = 1000, seed: int = 0
) -> ClassificationReport:
    """Scores labels, joined by document id: as many for a document in `hypotheses` as in `references`.

    `samples`, `seed`: of the bootstrap over documents; 0 samples for no intervals. ValueError without documents.
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
            assert right is not None
            support[number[right]] += 1
            if guess is None:
                missing += 1
                continue
            predicted[number[guess]] += 1
            hits[number[right]] += guess == right
    figures = bootstrap(counts, lambda drawn: _figures(drawn.sum(axis=0)), samples, seed)
    totals = counts.sum(axis=0)
    _, predictions, supports = totals[:-1].reshape(3, -1).tolist()
    rows = zip(names, *_precision_recall_f1(totals).tolist(), supports, predictions, strict=True)
    signature = {
        "labels": "one a document" if all(len(gold) == 1 for gold in references.values()) else "pooled over documents",
        "F1": "of the classes found among references and hypotheses",
        "bootstrap": resampling(samples, seed, "documents"),
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are only the common ones."""


def score(args: argparse.Namespace) -> Report:
    """A row for each system, the signatures, and a table of classes for each system."""
    (wanted,) = args.references
    references = read_labels(wanted)
    reports = {}
    for path in args.hypotheses:
        hypotheses = read_labels(path, missing=True)
        check_joined(hypotheses, references, (path, wanted))
        for identifier, gold in references.items():
            if len(gold) != (found := len(hypotheses[identifier])):
                counts = f"{found} labels in {path}, but {len(gold)} in {wanted}"
                raise ValueError(f"document {identifier!r}: {counts}")
        reports[path] = score_labels(hypotheses, references, args.bootstrap_samples, args.seed)
    rows = [["", *FIGURES]]
    rows += [[path, *(str(report.figures[name]) for name in FIGURES)] for path, report in reports.items()]
    lines = [*aligned(rows), *dict.fromkeys(report.signature for report in reports.values())]
    notes = []
    for path, report in reports.items():
        table = [["class", "precision", "recall", "F1", "support", "predicted"]]
        for name, score in report.classes.items():
            figures = (score.precision, score.recall, score.f1)
            table.append([name, *(f"{figure:.2f}" for figure in figures), str(score.support), str(score.predicted)])
        lines += ["", path, *aligned(table)]
        if report.missing:
            lost = f"{report.missing} of {report.elements} elements have no prediction and count as wrong"
            notes.append(f"{path}: {lost}")
    return Report(lines, notes, {path: asdict(report) for path, report in reports.items()})


def read_labels(path: str, missing: bool = False) -> dict[str, Labels]:
    """The labels of each document, in the file's order: one where it has `label`, else its `labels`.

    Other keys are ignored, so examples and predictions are read alike. A whole number stands for its digits.
    `missing`: a null among `labels` is allowed, an element without prediction. ValueError with file and line.
    """

    def parse(record: Mapping[str, Any], where: str) -> Labels:
        given = [key for key in ("label", "labels") if record.get(key) is not None]
        if len(given) != 1:
            raise ValueError(f"{where}: expected either 'label' or 'labels' among its keys {sorted(record)}")
        values = record["labels"] if given == ["labels"] else [record["label"]]
        if not isinstance(values, list) or not values:
            raise ValueError(f"{where}: 'labels' must be a list of labels, found {values!r:.60}")
        return tuple(None if missing and value is None else _label(value, where) for value in values)

    return by_id(path, json_lines(path), parse)


def _label(value: Any, where: str) -> str:
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise ValueError(f"{where}: a label must be a string, found {value!r:.60}")
