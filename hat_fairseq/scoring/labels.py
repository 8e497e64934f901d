"""Accuracy, micro and macro F1 of predicted labels, with a table of classes and a signature.

A document has one label, or one for each of its segments or words; these are pooled. The definitions are
scikit-learn's. Macro F1 is the mean of F1 over the classes that occur among references or predictions; micro F1 is F1
of the sums over classes. Where every element has a prediction, micro F1 is the accuracy.
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from hat_fairseq.data.files import Fields
from hat_fairseq.data.text import is_blank
from hat_fairseq.scoring.files import check_joined, read_by_id
from hat_fairseq.scoring.report import Interval, Report, aligned, bootstrap, resampling

Labels = tuple[str | None, ...]  # of a document; None: this element was truncated before the model saw it

FIGURES = ("accuracy", "micro F1", "macro F1")
COLUMNS = ("precision", "recall", "f1", "support", "predicted")  # of a class: x 100, and how often it occurs


@dataclass(frozen=True)
class LabelReport:
    """Figures (x 100) with intervals, `COLUMNS` of each class, and what they were computed from."""

    figures: dict[str, Interval]
    classes: dict[str, dict[str, float]]
    documents: int
    elements: int
    missing: int  # elements without prediction: they count as wrong
    signature: str


def score_labels(
    hypotheses: Mapping[str, Labels], references: Mapping[str, Labels], samples: int = 1000, seed: int = 0
) -> LabelReport:
    """Scores labels, joined by document id: as many for a document in `hypotheses` as in `references`.

    `samples`, `seed`: of the bootstrap over documents; 0 samples for no intervals. ValueError without documents.
    """
    labels = {label for each in (*references.values(), *hypotheses.values()) for label in each if label is not None}
    names = sorted(labels)
    number = {name: position for position, name in enumerate(names)}
    # Per document: true positives, predictions and support of each class, side by side, and its number of elements.
    counts = np.zeros((len(references), 3 * len(names) + 1), dtype=np.int64)
    for row, (identifier, gold) in zip(counts, references.items(), strict=True):
        hits, predicted, support = row[:-1].reshape(3, -1)
        row[-1] = len(gold)
        for guess, right in zip(hypotheses[identifier], gold, strict=True):
            assert right is not None
            support[number[right]] += 1
            if guess is not None:
                predicted[number[guess]] += 1
                hits[number[right]] += guess == right
    figures = bootstrap(counts, lambda drawn: _figures(drawn.sum(axis=0)), samples, seed)
    totals = counts.sum(axis=0)
    _, predictions, supports = totals[:-1].reshape(3, -1).tolist()
    rows = zip(names, *_precision_recall_f1(totals).tolist(), supports, predictions, strict=True)
    pooling = "one a document" if all(len(gold) == 1 for gold in references.values()) else "pooled over documents"
    return LabelReport(
        figures=dict(zip(FIGURES, figures, strict=True)),
        classes={name: dict(zip(COLUMNS, scores, strict=True)) for name, *scores in rows},
        documents=len(references),
        elements=int(totals[-1]),
        missing=sum(supports) - sum(predictions),
        signature=f"labels: {pooling} | F1: of the classes found among references and hypotheses | "
        f"bootstrap: {resampling(samples, seed, 'documents')} | classes: {len(names)} | documents: {len(references)}",
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


def score(args: argparse.Namespace) -> Report:
    """Returns a row for each system, the signatures, and a table of classes for each system."""
    (wanted,) = args.references
    references = read_by_id(wanted, _labels)
    report = Report([["", *FIGURES]])
    for path in args.hypotheses:
        hypotheses = read_by_id(path, partial(_labels, truncated=True))
        check_joined(hypotheses, references, (path, wanted))
        for identifier, gold in references.items():
            if (count := len(hypotheses[identifier])) != len(gold):
                raise ValueError(f"document {identifier!r}: {count} labels in {path}, but {len(gold)} in {wanted}")
        system = score_labels(hypotheses, references, args.bootstrap_samples, args.seed)
        report.record[path] = asdict(system)
        report.rows.append([path, *map(str, system.figures.values())])
        report.signatures.append(system.signature)
        table = [["class", "precision", "recall", "F1", "support", "predicted"]]
        for name, (*scores, support, predicted) in ((n, each.values()) for n, each in system.classes.items()):
            table.append([name, *(f"{score:.2f}" for score in scores), str(support), str(predicted)])
        report.more.extend(["", path, *aligned(table)])
        if system.missing:
            missing = f"{system.missing} of {system.elements} elements have no prediction and count as wrong"
            report.notes.append(f"{path}: {missing}")
    return report


def _labels(fields: Fields, truncated: bool = False) -> Labels:
    """The labels of a document: one where it has `label`, else its `labels`; other keys are ignored.

    A whole number stands for its digits. `truncated`: a null among `labels` is allowed. ValueError with file and line.
    """
    label, values = fields.record.get("label"), fields.record.get("labels")
    if (label is None) == (values is None):
        raise fields.error(f"expected either 'label' or 'labels' among its keys {sorted(fields.record)}")
    values = [label] if values is None else values
    if not isinstance(values, list) or not values:
        raise fields.error(f"'labels' must be a list of labels, found {values!r:.60}")
    for value in values:
        is_label = (isinstance(value, str) and not is_blank(value)) or type(value) is int
        if not is_label and not (truncated and value is None):
            raise fields.error(f"a label must be a string, found {value!r:.60}")
    return tuple(None if value is None else str(value) for value in values)
