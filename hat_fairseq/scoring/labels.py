"""Accuracy, micro and macro F1 of predicted labels, with a table of classes and a signature.

A document has one label, or one for each of its segments or words, maybe none; these are pooled. The definitions are
scikit-learn's. Macro F1 is the mean of F1 over the classes that occur among references or predictions; micro F1 is F1
of the sums over classes. Where every element has a prediction, micro F1 is the accuracy.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from hat_fairseq.data.files import Fields
from hat_fairseq.data.manifest import truncation
from hat_fairseq.data.record import shown_label
from hat_fairseq.data.text import is_blank
from hat_fairseq.printed import aligned
from hat_fairseq.scoring.files import check_joined, is_empty, read_by_id
from hat_fairseq.scoring.label_baselines import differences, few, fitted_of, warnings_of
from hat_fairseq.scoring.report import Output, Report, Signature, bootstrap, check_counts, resampling

Labels = tuple[str | None, ...]  # of a document; None: this element was truncated before the model saw it

FIGURES = ("accuracy", "micro F1", "macro F1")
COLUMNS = ("precision", "recall", "f1", "support", "predicted")  # of a class: x 100, and how often it occurs


@dataclass(frozen=True, kw_only=True)
class LabelReport(Report):
    """`FIGURES` (x 100) with intervals, `COLUMNS` of each class, and what they were computed from."""

    classes: dict[str, dict[str, float]]
    documents: int
    elements: int
    missing: int  # elements without prediction: they count as wrong


def classification(
    hypotheses: Sequence[str | int | Sequence[str | int | None] | None],
    references: Sequence[str | int | Sequence[str | int | None]],
    *,
    bootstrap_samples: int = 1000,
    seed: int = 0,
) -> LabelReport:
    """Scores the labels of documents against those of the same documents.

    Args:
        hypotheses: of each document its label, or a list of the labels of its elements; None for a document or an
            element without prediction, which counts as wrong. A whole number stands for its digits.
        references: likewise; None is an error.
        bootstrap_samples, seed: of the resampling of documents; 0 samples for no intervals.

    Raises:
        ValueError: other numbers of documents or elements in one than in the other, no documents, or None among the
            references.
    """
    check_counts(hypotheses=hypotheses, references=references)
    golds = [_labels_of(each) for each in references]
    pairs = [(_labels_of(each), gold) for each, gold in zip(hypotheses, golds, strict=True)]
    for position, (guesses, gold) in enumerate(pairs, start=1):
        if None in gold:
            raise ValueError(f"reference {position} lacks a label: {gold!r:.80}")
        if len(guesses) != len(gold):
            raise ValueError(f"document {position}: {len(guesses)} labels, but {len(gold)} in the reference")
    names = sorted({label for pair in pairs for labels in pair for label in labels if label is not None})
    number: dict[str | None, int] = {name: position for position, name in enumerate(names)}
    # Of each element its document, its class, and the class predicted, or one more for none.
    document = np.repeat(np.arange(len(pairs)), [len(gold) for gold in golds])
    right = np.array([number[label] for gold in golds for label in gold], dtype=np.int64)
    guess = np.array([number.get(label, len(names)) for own, _ in pairs for label in own], dtype=np.int64)

    def totals_of(drawn: np.ndarray) -> np.ndarray:
        """Returns (3, K) true positives, predictions and support of each class in the drawn documents."""
        times = np.bincount(drawn, minlength=len(pairs))[document]
        sides = (right, times * (right == guess)), (guess, times), (right, times)
        return np.array([np.bincount(own, weights, len(names) + 1)[:-1] for own, weights in sides])

    every = np.arange(len(pairs))
    figures = bootstrap(every, lambda drawn: _figures(totals_of(drawn)), bootstrap_samples, seed)
    totals = totals_of(every)
    _, predictions, supports = totals.astype(int).tolist()
    rows = zip(names, *_precision_recall_f1(totals).tolist(), supports, predictions, strict=True)
    settings = {
        "labels": "one a document" if all(len(gold) == 1 for gold in golds) else "pooled over documents",
        "F1": "of the classes found among references and hypotheses",
        "bootstrap": resampling(bootstrap_samples, seed, "documents"),
        "classes": str(len(names)),
        "documents": str(len(pairs)),
    }
    return LabelReport(
        scores=dict(zip(FIGURES, figures, strict=True)),
        signature=Signature(settings),
        classes={name: dict(zip(COLUMNS, scores, strict=True)) for name, *scores in rows},
        documents=len(pairs),
        elements=len(right),
        missing=sum(supports) - sum(predictions),
    )


def _labels_of(document: str | int | Sequence[str | int | None] | None) -> Labels:
    several = isinstance(document, Iterable) and not isinstance(document, str)
    labels: tuple[Any, ...] = tuple(document) if several else (document,)  # type: ignore[arg-type]
    if others := [label for label in labels if not (label is None or isinstance(label, str | Integral))]:
        raise ValueError(f"a label must be a string or a whole number, not {others[0]!r:.60}")
    return tuple(None if label is None else str(label) for label in labels)


def _precision_recall_f1(totals: np.ndarray) -> np.ndarray:
    """(3, K) totals -> (3, K) x 100."""
    hits, predicted, support = totals
    return 100 * hits * [[1], [1], [2]] / np.maximum([predicted, support, predicted + support], 1)


def _figures(totals: np.ndarray) -> np.ndarray:
    """(3, K) totals -> accuracy, micro F1 and macro F1, x 100; 0 where no document has a label."""
    hits, predicted, support = totals
    occurs = max(1, np.count_nonzero(predicted + support))  # in a resampled test set a class may be absent
    micro = 200 * hits.sum() / max(1, predicted.sum() + support.sum())
    return np.array([100 * hits.sum() / max(1, support.sum()), micro, _precision_recall_f1(totals)[2].sum() / occurs])


def score(args: argparse.Namespace) -> Output:
    """Returns a row for each system, the signatures, and a table of classes for each system."""
    (wanted,) = args.references
    references = read_by_id(wanted, _labels)
    output, golds = Output([["", *FIGURES]]), list(references.values())
    systems = dict[str, list[Labels]]()
    for path in args.hypotheses:
        hypotheses = read_by_id(path, _predicted)
        check_joined(hypotheses, references, (path, wanted))
        for identifier, gold in references.items():
            hypotheses[identifier] = hypotheses[identifier] or (None,) * len(gold)
            if (count := len(hypotheses[identifier])) != len(gold):
                raise ValueError(f"document {identifier!r}: {count} labels in {path}, but {len(gold)} in {wanted}")
        systems[path] = [hypotheses[identifier] for identifier in references]
    fitted = fitted_of(args, list(references))
    systems |= {each.title: each.predictions for each in fitted}
    for path, guesses in systems.items():
        report = classification(guesses, golds, bootstrap_samples=args.bootstrap_samples, seed=args.seed)
        record = report.to_json()
        signature = record.pop("signature")
        output.record[path] = {"figures": record.pop("scores"), **record, "signature": signature}
        output.rows.append([path, *map(str, report.scores.values())])
        output.signatures.append(str(report.signature))
        if path not in args.hypotheses:
            continue
        output.notes.extend(warnings_of(path, guesses, golds))
        table = [["class", "precision", "recall", "F1", "support", "predicted"]]
        for name, (*scores, support, predicted) in ((n, each.values()) for n, each in report.classes.items()):
            table.append([shown_label(name), *(f"{score:.2f}" for score in scores), str(support), str(predicted)])
        output.more.extend(["", path, *aligned(table)])
        if report.missing:
            missing = f"{report.missing} of {report.elements} elements have no prediction and count as wrong"
            output.notes.append(f"{path}: {missing}")
    _compare(output, systems, golds, fitted, args)
    output.notes.extend(few(golds))
    text = Path(wanted).resolve().parent
    if text.name == "text" and (note := truncation(text.parent, Path(wanted).stem)):
        output.notes.append(f"{wanted}: {note}")
    return output


def _compare(output: Output, systems: dict[str, Any], golds: list[Any], fitted: list[Any], args: Any) -> None:
    """Adds the differences of accuracy to the first system, and how baselines were chosen."""
    paired = differences(systems, golds, args.bootstrap_samples, args.seed) if fitted else {}
    for name, difference in paired.items():
        output.record[name]["accuracy minus the first"] = asdict(difference)
    if paired:
        rows = [[name, str(difference)] for name, difference in paired.items()]
        output.more.extend(["", *aligned([[f"minus {next(iter(systems))}", "accuracy"], *rows])])
    for each in fitted:
        output.record[each.title] |= each.chosen


def _predicted(fields: Fields) -> Labels:
    """The predicted labels, with None for each element that was truncated; none of a document without text."""
    return () if is_empty(fields) else _labels(fields, truncated=True)


def _labels(fields: Fields, truncated: bool = False) -> Labels:
    """The labels of a document: one where it has `label`, else its `labels`; other keys are ignored.

    A whole number stands for its digits. `truncated`: a null among `labels` is allowed. ValueError with file and line.
    """
    label, values = fields.record.get("label"), fields.record.get("labels")
    if (label is None) == (values is None):
        raise fields.error(f"expected either 'label' or 'labels' among its keys {sorted(fields.record)}")
    values = [label] if values is None else values
    if not isinstance(values, list):
        raise fields.error(f"'labels' must be a list of labels, found {values!r:.60}")
    for value in values:
        is_label = (isinstance(value, str) and not is_blank(value)) or type(value) is int
        if not is_label and not (truncated and value is None):
            raise fields.error(f"a label must be a string, found {value!r:.60}")
    return tuple(None if value is None else str(value) for value in values)
