"""Score a model's output with a metric; `hat score METRIC --help` lists the options of a metric."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hat_fairseq.data.files import json_text, read_json
from hat_fairseq.data.outputs import atomic_file, check_folder, check_output
from hat_fairseq.scoring import bleu, label_baselines, labels, qa, rouge
from hat_fairseq.scoring.report import Output
from hat_fairseq.units import score as evidence_score

TEXTS = ".jsonl of hat generate (id, text), or plain text with one document a line"
TARGETS = ".jsonl with id and target (text, list of sentences, or several such lists), or plain text; several files "
TARGETS += "hold several references of each document"
RECORDS = "text/SPLIT.jsonl of hat preprocess"


@dataclass(frozen=True)
class Metric:
    """A metric of `hat score`; its references may be in several files if they are `TARGETS`."""

    help: str
    score: Callable[[argparse.Namespace], Output]  # ValueError for files that cannot be scored
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None  # options that only this metric has
    hypotheses: str = ".jsonl of hat predict"
    references: str = RECORDS
    seed: int = 0  # of the resampling
    gold: tuple[str, ...] = ("answers", "annotations")  # keys of the records that it may be about
    check: Callable[[argparse.Namespace], None] | None = None  # ValueError for options that no files go with


METRICS = {
    "rouge": Metric(
        "compute ROUGE-1, ROUGE-2 and ROUGE-L of summaries",
        rouge.score,
        rouge.add_arguments,
        TEXTS,
        TARGETS,
        gold=("target",),
        check=rouge.check,
    ),
    "bleu": Metric(
        "compute BLEU (of documents and of sentences) and chrF2 of translations with sacrebleu",
        bleu.score,
        bleu.add_arguments,
        f"{TEXTS}; s-BLEU needs segments; p-values are against the first system",
        TARGETS,
        bleu.BleuSettings.seed,
        ("target",),
        bleu.check,
    ),
    "classification": Metric(
        "compute accuracy, micro F1 and macro F1 of labels",
        labels.score,
        label_baselines.add_arguments,
        references=f"{RECORDS}, or .jsonl with id and label(s)",
        gold=("label", "labels"),
    ),
    "evidence": Metric(
        "compute average precision, F1 and passage F1 of the turns or sentences that answer questions",
        evidence_score.score,
        evidence_score.add_arguments,
        references=f"{RECORDS}, or your own records with turns or sentences",
        gold=("evidence",),
        check=evidence_score.check,
    ),
    "qa": Metric(
        "compute exact match and F1 of answers to your own questions",
        qa.score_answers,
        references=f"{RECORDS}, or your own records",
    ),
    "squad": Metric(
        "compute exact match and F1 of answers as in SQuAD 2.0",
        qa.score_answers,
        qa.add_threshold,
        check=qa.check_threshold,
    ),
    "triviaqa": Metric("compute exact match and F1 of answers as in TriviaQA (Wikipedia)", qa.score_triviaqa),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    subparsers = parser.add_subparsers(dest="metric", metavar="METRIC", required=True)
    for name, metric in METRICS.items():
        sub = subparsers.add_parser(name, help=metric.help, description=metric.help, allow_abbrev=False)
        text = f"score these files, one for each system: {metric.hypotheses}"
        sub.add_argument("hypotheses", nargs="+", metavar="HYPOTHESES", help=text)
        text = f"compare with the references in {metric.references}"
        sub.add_argument("--references", nargs="+", action="extend", required=True, metavar="FILE", help=text)
        text = "compute intervals from this many resampled test sets; 0 for no intervals (default: %(default)s)"
        sub.add_argument("--bootstrap-samples", type=int, default=1000, metavar="N", help=text)
        text = "print scores and signatures as JSON instead of a table"
        sub.add_argument("--json", action="store_true", help=text)
        text = "also write scores and signatures as JSON to this file, which may have scores of an earlier run"
        sub.add_argument("--out", metavar="FILE", help=text)
        if metric.add_arguments:
            metric.add_arguments(sub)


def main(args: argparse.Namespace) -> int:
    """Prints the table and the signatures, or JSON, and, on stderr, notes."""
    if args.out:
        check_folder(Path(args.out), "--out")
    return write_scores(checked(args))


def check_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Raises ValueError for a mistake in `hat score` that is known before there is anything to score."""
    args = checked(parser.parse_args(words))
    if check := METRICS[args.metric].check:
        check(args)


def checked(args: argparse.Namespace) -> argparse.Namespace:
    """Returns the arguments with the seed; ValueError for those that contradict each other or have no effect."""
    metric = METRICS[args.metric]
    if args.bootstrap_samples < 0:
        raise ValueError(f"--bootstrap-samples must not be negative: {args.bootstrap_samples}")
    for what, paths in (("HYPOTHESES", args.hypotheses), ("--references", args.references)):
        if len(set(paths)) < len(paths):
            raise ValueError(f"{what} names a file twice")
    if len(args.references) > 1 and metric.references != TARGETS:
        raise ValueError(f"{args.metric} takes one file of --references, not {len(args.references)}")
    if args.out:
        others = [getattr(args, name, None) for name in ("valid", "train")]
        replaces = has_scores(Path(args.out))
        if Path(args.out).is_file() and not replaces:
            raise ValueError(f"--out {args.out} exists and has no scores of hat score; name another file")
        check_output(args.out, replaces, [*args.hypotheses, *args.references, *others], "--out")
    return argparse.Namespace(**{**vars(args), "seed": metric.seed})


def has_scores(path: Path) -> bool:
    """Returns whether a file is one that `hat score --out` has written, which it may replace."""
    if not path.is_file():
        return False
    try:
        record = read_json(path)
    except ValueError:
        return False
    if not isinstance(record, dict) or not record:
        return False
    return "signatures" in record or all(isinstance(each, dict) and "signature" in each for each in record.values())


def write_scores(args: argparse.Namespace) -> int:
    """Scores with checked arguments, and prints and writes the result."""
    output = METRICS[args.metric].score(args)
    record = json_text(output.record, indent=2)
    if args.out:  # before what is printed, whose reader may close it
        with atomic_file(args.out) as file:
            file.write(f"{record}\n".encode())
    print(*([record] if args.json else output.lines), sep="\n")
    if output.notes:
        print(*output.notes, sep="\n", file=sys.stderr)
    return 0
