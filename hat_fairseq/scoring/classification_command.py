"""Accuracy, micro and macro F1 of predicted labels, with a table of classes and a signature."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from hat_fairseq.scoring.classification import FIGURES, ClassificationReport, score_labels
from hat_fairseq.scoring.columns import aligned
from hat_fairseq.scoring.label_files import check_joined, check_lengths, read_labels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--hypotheses",
        nargs="+",
        required=True,
        metavar="FILE",
        help="one or more systems: .jsonl with id and label (or labels), as hat predict writes it",
    )
    parser.add_argument(
        "--references", required=True, metavar="FILE", help="text/SPLIT.examples.jsonl of hat preprocess, or your own"
    )
    add_resampling(parser)
    parser.add_argument("--json", metavar="FILE", help="write scores and signatures there as well")


def add_resampling(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the bootstrap."""
    parser.add_argument(
        "--bootstrap-samples", type=int, default=1000, metavar="N", help="0 for no intervals (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the resampling (default: %(default)s)")


def main(args: argparse.Namespace) -> int:
    """Score each file of hypotheses: a row for it in the first table, and a table of its classes."""
    references = read_labels(args.references)
    reports = {}
    for path in args.hypotheses:
        hypotheses = read_labels(path, missing=True)
        check_joined(hypotheses, references, (path, args.references))
        check_lengths(hypotheses, references, (path, args.references))
        reports[path] = score_labels(hypotheses, references, args.bootstrap_samples, args.seed)  # type: ignore[arg-type]
    print(render(reports))
    for path, report in reports.items():
        if report.missing:
            lost = f"{report.missing} of {report.elements} elements have no prediction and count as wrong"
            print(f"{path}: {lost}", file=sys.stderr)
    if args.json:
        text = json.dumps({path: asdict(report) for path, report in reports.items()}, indent=2, ensure_ascii=False)
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    return 0


def render(reports: dict[str, ClassificationReport]) -> str:
    """Return a table with a row per system, the signatures, and for each system a table with a row per class."""
    rows = [["", *FIGURES]]
    rows += [[path, *(str(report.figures[name]) for name in FIGURES)] for path, report in reports.items()]
    lines = [*aligned(rows), *dict.fromkeys(report.signature for report in reports.values())]
    for path, report in reports.items():
        table = [["class", "precision", "recall", "F1", "support", "predicted"]]
        for name, score in report.classes.items():
            figures = (score.precision, score.recall, score.f1)
            table.append([name, *(f"{figure:.2f}" for figure in figures), str(score.support), str(score.predicted)])
        lines += ["", path, *aligned(table)]
    return "\n".join(lines)
