"""Score a model's output: `hat score rouge` and `bleu` for texts, `classification` and `qa` for predictions."""

import argparse
import json
import sys
from typing import Any, Protocol

from hat_fairseq.data.outputs import atomic_file, check_output
from hat_fairseq.scoring import (
    bleu_command,
    classification,
    natural_questions,
    qa,
    rouge_command,
    squad_command,
    triviaqa,
    tydi_qa,
)
from hat_fairseq.scoring.report import Report


class Metric(Protocol):
    """A metric of `hat score`; the first line of `__doc__` is its help text."""

    __doc__: str | None
    HYPOTHESES: str  # what --hypotheses may be
    REFERENCES: str
    SEVERAL_REFERENCES: bool  # whether --references may be several files

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the options that only this metric has, and its own defaults of the others."""

    def score(self, args: argparse.Namespace) -> Report:
        """Reads the files, scores and describes the result; ValueError for files that cannot be scored."""


METRICS: dict[str, Metric] = {
    "rouge": rouge_command,
    "bleu": bleu_command,
    "classification": classification,
    "qa": qa,
    "squad": squad_command,
    "natural_questions": natural_questions,
    "tydi_qa": tydi_qa,
    "triviaqa": triviaqa,
}


class Once(argparse.Action):
    """Stores the values of an option that may be given once."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given twice; name all files after one {option}")
        setattr(namespace, self.dest, values)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(dest="metric", metavar="METRIC", required=True)
    for name, metric in METRICS.items():
        text = (metric.__doc__ or "").partition("\n")[0]
        sub = subparsers.add_parser(name, help=text.replace("%", "%%"), description=text, allow_abbrev=False)
        files: Any = {"nargs": "+", "required": True, "metavar": "FILE"}
        sub.add_argument("--hypotheses", action=Once, help=f"one or more systems: {metric.HYPOTHESES}", **files)
        sub.add_argument("--references", action="extend", help=metric.REFERENCES, **files)
        text = "resampled test sets behind the intervals; 0 for no intervals (default: %(default)s)"
        sub.add_argument("--bootstrap-samples", type=int, default=1000, metavar="N", help=text)
        sub.add_argument("--seed", type=int, default=0, help="of the resampling (default: %(default)s)")
        sub.add_argument("--json", metavar="FILE", help="write scores and signatures there as well")
        sub.add_argument("--overwrite", action="store_true", help="replace the file of --json")
        metric.add_arguments(sub)


def main(args: argparse.Namespace) -> int:
    """Prints the table, the signatures and, on stderr, notes."""
    metric = METRICS[args.metric]
    if args.bootstrap_samples < 0:
        raise ValueError(f"--bootstrap-samples must not be negative: {args.bootstrap_samples}")
    for option, paths in (("--hypotheses", args.hypotheses), ("--references", args.references)):
        if len(set(paths)) < len(paths):
            raise ValueError(f"{option} names a file twice")
    if len(args.references) > 1 and not metric.SEVERAL_REFERENCES:
        raise ValueError(f"{args.metric} takes one file of --references, not {len(args.references)}")
    if args.json:
        inputs = [*args.hypotheses, *args.references, getattr(args, "null_odds", None)]
        check_output(args.json, args.overwrite, inputs, "--json")
    report = metric.score(args)
    print("\n".join(report.lines))
    for note in report.notes:
        print(note, file=sys.stderr)
    if args.json:
        with atomic_file(args.json) as file:
            file.write((json.dumps(report.record, indent=2, ensure_ascii=False) + "\n").encode())
    return 0
