"""Score a model's output with a metric."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hat_fairseq.data.files import json_text, read_json
from hat_fairseq.data.outputs import atomic_file, check_folder, check_output
from hat_fairseq.scoring import bleu, label_baselines, labels, qa, rouge
from hat_fairseq.scoring.files import splits_beside
from hat_fairseq.scoring.report import Output
from hat_fairseq.units import score as evidence_score

STDOUT = "-"  # as a value of --out
WRITES_STDOUT = True
TEXTS = ".jsonl of hat generate (id, text), or plain text with one document a line"
TARGETS = ".jsonl with id and target (text, list of sentences, or several such lists), or plain text; several files "
TARGETS += "hold several references of each document"
RECORDS = "text/SPLIT.jsonl of hat preprocess"


@dataclass(frozen=True)
class Metric:
    """A metric of `hat score`; its references may be in several files if they are `TARGETS`."""

    help: str
    score: Callable[[argparse.Namespace], Output]  # ValueError for files that cannot be scored
    options: tuple[str, ...] = ()  # that not all metrics have
    hypotheses: str = ".jsonl of hat predict"
    references: str = RECORDS
    seed: int = 0  # of the resampling
    gold: tuple[str, ...] = ("answers", "annotations")  # keys of the records that it may be about
    check: Callable[[argparse.Namespace], None] | None = None  # ValueError for options that no files go with


METRICS = {
    "rouge": Metric(
        "compute ROUGE-1, ROUGE-2 and ROUGE-L of summaries",
        rouge.score,
        ("like", "stem"),
        TEXTS,
        TARGETS,
        gold=("target",),
        check=rouge.check,
    ),
    "bleu": Metric(
        "compute BLEU (of documents and of sentences) and chrF2 of translations with sacrebleu",
        bleu.score,
        ("tokenize", "language"),
        f"{TEXTS}; s-BLEU needs segments; p-values are against the first system",
        TARGETS,
        bleu.BleuSettings.seed,
        ("target",),
        bleu.check,
    ),
    "classification": Metric(
        "compute accuracy, micro F1 and macro F1 of labels",
        labels.score,
        ("baselines", "encoder", "vectors"),
        references=f"{RECORDS}, or .jsonl with id and label(s)",
        gold=("label", "labels"),
    ),
    "evidence": Metric(
        "compute average precision, F1 and passage F1 of the turns or sentences that answer questions",
        evidence_score.score,
        ("baselines",),
        references=f"{RECORDS}, or your own records with turns or sentences",
        gold=("evidence",),
    ),
    "qa": Metric(
        "compute exact match and F1 of answers to your own questions",
        qa.score_answers,
        references=f"{RECORDS}, or your own records",
    ),
    "squad": Metric(
        "compute exact match and F1 of answers as in SQuAD 2.0",
        qa.score_answers,
        ("no_answer_threshold",),
        check=qa.check_threshold,
    ),
    "triviaqa": Metric("compute exact match and F1 of answers as in TriviaQA (Wikipedia)", qa.score_triviaqa),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = f"{', '.join(METRICS)}; their own options are below"
    parser.add_argument("metric", metavar="METRIC", choices=METRICS, help=text)
    text = "score these files, one for each system"
    parser.add_argument("hypotheses", nargs="+", metavar="HYPOTHESES", help=text)
    text = "compare with the references in these files"
    parser.add_argument("--references", nargs="+", action="extend", required=True, metavar="FILE", help=text)
    text = "compute intervals from this many resampled test sets; 0 for no intervals (default: %(default)s)"
    parser.add_argument("--bootstrap-samples", type=int, default=1000, metavar="N", help=text)
    text = "also write scores and signatures as JSON to this file, which may have scores of an earlier run; - prints "
    parser.add_argument("--out", metavar="FILE", help=text + "them instead of a table")
    groups = {
        name: parser.add_argument_group(
            name, f"{metric.help}. HYPOTHESES: {metric.hypotheses}. --references: {metric.references}."
        )
        for name, metric in METRICS.items()
    }
    rouge.add_arguments(groups["rouge"])
    bleu.add_arguments(groups["bleu"])
    text = (
        "also score baselines, whose settings are chosen on valid.jsonl beside TRAIN: classification fits them to the "
    )
    text += "documents of TRAIN, evidence weights words by how rare they are in its questions (default: train.jsonl "
    group = parser.add_argument_group("classification and evidence")
    group.add_argument("--baselines", nargs="?", const="", metavar="TRAIN", help=f"{text}beside the references)")
    label_baselines.add_arguments(groups["classification"])
    qa.add_threshold(groups["squad"])


def main(args: argparse.Namespace) -> int:
    """Prints the table and the signatures, or with `--out -` JSON, and, on stderr, notes."""
    if args.out not in (None, STDOUT):
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
    for name in dict.fromkeys(name for each in METRICS.values() for name in each.options):
        if getattr(args, name) is not None and name not in metric.options:
            raise ValueError(f"--{name.replace('_', '-')} has no effect on {args.metric}: remove it")
    if args.bootstrap_samples < 0:
        raise ValueError(f"--bootstrap-samples must not be negative: {args.bootstrap_samples}")
    for what, paths in (("HYPOTHESES", args.hypotheses), ("--references", args.references)):
        if len(set(paths)) < len(paths):
            raise ValueError(f"{what} names a file twice")
    if len(args.references) > 1 and metric.references != TARGETS:
        raise ValueError(f"{args.metric} takes one file of --references, not {len(args.references)}")
    if args.out not in (None, STDOUT):
        others = [*splits_beside(args.baselines, args.references[0])] if args.baselines is not None else []
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
    if args.out not in (None, STDOUT):  # before what is printed, whose reader may close it
        with atomic_file(args.out) as file:
            file.write(f"{record}\n".encode())
    print(*([record] if args.out == STDOUT else output.lines), sep="\n")
    if output.notes:
        print(*output.notes, sep="\n", file=sys.stderr)
    return 0
