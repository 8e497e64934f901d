"""Score a model's output: `hat score rouge` and `bleu` for texts, `classification` and `squad` for predictions."""

from __future__ import annotations

import argparse

from hat_fairseq.scoring import bleu_command, classification_command, rouge_command, squad_command

METRICS = {
    "rouge": rouge_command,
    "bleu": bleu_command,
    "classification": classification_command,
    "squad": squad_command,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare a sub-command for each metric."""
    subparsers = parser.add_subparsers(dest="metric", metavar="METRIC", required=True)
    for name, module in METRICS.items():
        text = (module.__doc__ or "").partition("\n")[0].replace("%", "%%")
        subparser = subparsers.add_parser(name, help=text, description=text)
        module.add_arguments(subparser)
        subparser.set_defaults(score=module.main)


def main(args: argparse.Namespace) -> int:
    """Score by the metric that was named."""
    return int(args.score(args))
