"""Predict documents with a fine-tuned encoder: labels, choices, or answers to questions.

The input is raw, or a split of preprocessed data, whose records are read. A run that was stopped resumes.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..data.kinds import KINDS, LabelledKind
from ..data.outputs import check_output
from ..data.record import Record
from ..options import Option, options_of
from ..scoring.official import (
    FILES,
    dataset_of,
    null_answer,
    official_files,
    write_official_answers,
    write_squad_answers,
)
from ..workers import Workers
from . import command, jobs, reading
from .labels import Predictor, check_details, labelled_kind
from .loaded import Loaded
from .rows import Line, check_batches

WRITES_STDOUT = True  # with --out -
RECORDS = 128  # for a worker at a time, at least
OPTIONS = ("most_passages", "max_answer_length")  # of answers, beside --threshold


@dataclass
class Labels(jobs.Job):
    """Predicts records; see `Predictor.predictions` for the arguments."""

    batch_size: int | None
    max_tokens: int | None
    options: Any
    details: bool
    vectors: str | None = None  # the file that keeps them

    def make_model(self, loaded: Loaded) -> Predictor:
        predictor = Predictor(loaded)
        if self.vectors is not None:
            predictor.keep_vectors(self.vectors)
        return predictor

    def save_vectors(self) -> None:
        """Writes the file of new vectors, if the model was needed; it was not if all batches were finished before."""
        if self.vectors is not None and "model" in vars(self):
            self.model.save_vectors()

    def lines(self, records: Sequence[Record]) -> list[Line]:
        sizes = self.batch_size, self.max_tokens
        return [each.to_json() for each in self.model.predictions(records, *sizes, self.options, self.details)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model_and_input(parser)
    command.add_out(parser, "write the predictions as JSON lines to this file, which ends in .jsonl")
    command.add_batches(parser)
    text = "also write the segments of each document with their weights or labels, and the best answers"
    parser.add_argument("--details", action="store_true", help=text)
    text = (
        "take the vectors of sentences that the training of hat_units has kept in this file (its --vectors), and keep "
    )
    text += "new ones there"
    parser.add_argument("--vectors", metavar="FILE", help=text)
    command.add_machine(parser)
    group = parser.add_argument_group("answers to questions")
    options = answer_options()
    text = (
        "set a threshold: X of evidence, no-answer=X of qa, paragraph=X or answer=X of document_qa; repeat the option "
    )
    text += "for each (default: the model's of evidence; 0 of qa; none of document_qa)"
    group.add_argument("--threshold", action="append", metavar="[NAME=]X", help=text)
    options["most_passages"].add_to(group)
    options["max_answer_length"].add_to(group, help=options["max_answer_length"].help_with_default)


def answer_options() -> dict[str, Option]:
    """Returns the options of all kinds, by name."""
    classes = [kind.prediction_options for kind in KINDS.values() if isinstance(kind, LabelledKind)]
    return {name: option for each in filter(None, classes) for name, option in options_of(each).items()}


@dataclass(frozen=True)
class Official:
    """The files for official scorers, whose names are fixed, beside the file of --out.

    Attributes:
        paths: none with --out -, and for other kinds than questions.
        dataset: whose scorer reads them; None for the form of SQuAD.
    """

    paths: list[Path]
    dataset: str | None

    @classmethod
    def of(cls, args: argparse.Namespace, kind: str, records: Sequence[Record]) -> "Official":
        """Returns the files of some records; ValueError for records of several data sets."""
        names, datasets = official_files(kind, records[0]), list(dict.fromkeys(map(dataset_of, records)))
        if args.out == command.STDOUT:
            if names:
                print("with --out - the files for official scorers are not written", file=sys.stderr)
            return cls([], None)
        if len(datasets) > 1:
            several = " and ".join(name or "no dataset" for name in datasets)
            raise ValueError(
                f"{args.input} has questions of {several}, whose official files differ: give them one by one"
            )
        return cls(list(map(args.out.with_name, names)), datasets[0])

    def check(self, args: argparse.Namespace, inputs: Sequence[Any]) -> None:
        """Raises ValueError if they, or the file of --out, may not be written."""
        command.check_lines(args.out, args.overwrite, inputs)
        for path in self.paths:
            if path.is_file() and not args.overwrite:  # its name is fixed
                ways = f"choose another folder for {args.out.name}, or replace it with --overwrite"
                raise ValueError(f"{path}, a file for official scorers, exists: {ways}")
            check_output(path, args.overwrite, inputs)

    def write(self, read: reading.Input, predictions: Sequence[Line]) -> None:
        """Writes the answers to all questions that were read."""
        if not self.paths:
            return
        answers, folder = read.in_order(iter(predictions), **null_answer(predictions)), self.paths[0].parent
        if self.dataset is None:
            write_squad_answers(folder, answers)
        else:
            write_official_answers(folder, self.dataset, zip(read.records, answers, strict=True))


def thresholds_of(stated: Sequence[str], kind: LabelledKind) -> dict[str, float]:
    """Returns options of a kind by name; ValueError for a threshold that it does not have, or that is no number."""
    names = options_of(kind.prediction_options) if kind.prediction_options else ()
    known = {
        name.removesuffix("threshold").rstrip("_").replace("_", "-"): name for name in names if "threshold" in name
    }
    values = {}
    for text in stated:
        name, _, number = text.rpartition("=")
        if name not in known:
            forms = " or ".join(f"--threshold {f'{each}=' * bool(each)}X" for each in known)
            raise ValueError(
                f"--threshold {text} has no effect on the kind {kind.name}: {f'give {forms}' if forms else 'remove it'}"
            )
        try:
            values[known[name]] = float(number)
        except ValueError:
            raise ValueError(f"--threshold {text}: {number!r} is no number") from None
    return values


def main(args: argparse.Namespace) -> int:
    """Predicts records and writes the predictions, and files for official scorers."""
    if args.out.suffix != ".jsonl" and args.out != command.STDOUT:  # predictions.json would be SQuAD's own file
        raise ValueError(f"--out {args.out} must end in .jsonl: predictions are JSON lines")
    inputs = [args.input, args.data, args.model]
    command.check_lines(args.out, args.overwrite, inputs)
    check_batches(args.batch_size, args.max_tokens)
    workers, files = workers_of(args), jobs.model_files(args, args.model)
    pipeline = files.pipeline(workers)
    kind = labelled_kind(pipeline, args.model)
    options = options_for(args, kind)
    read = reading.read_input(args, pipeline)
    official = Official.of(args, kind.name, read.records)
    official.check(args, inputs)
    job = Labels(files, args.batch_size, args.max_tokens, options, args.details, args.vectors)
    size = max(RECORDS, 8 * (args.batch_size or 0))  # enough for batches of rows of similar length
    with jobs.results_of(job, read.with_text, size, f"{args.out.stem}: predict", args.out, workers) as (results, _):
        official.check(args, inputs)  # a run that had the lock may have written them
        predictions = list(results)
        job.save_vectors()
        official.check(args, inputs)  # so may a run with another --out in this folder
        lines = read.in_order(iter(predictions), empty=True)
        command.write_lines(args.out, (line_of(line, args.details) for line in lines))
        official.write(read, predictions)  # before the results are removed, which have more than the lines
    command.say(args.out, f"{len(lines)} predictions")
    if lost := sum(line.get("labels", []).count(None) for line in predictions):
        print(f"{lost} {kind.name} were truncated and have no prediction: null among the labels", file=sys.stderr)
    if official.dataset is not None:
        print(f"{official.paths[0]}: for the official scorer of {official.dataset}")
    return 0


def workers_of(args: argparse.Namespace) -> Workers:
    """Returns the workers of the arguments; ValueError for several that would write one file of vectors."""
    workers = command.workers_of(args)
    if args.vectors is None:
        return workers
    if args.cluster or args.workers not in (None, 1):
        raise ValueError("--vectors is a file that one worker writes: remove it, or --workers and --cluster")
    return replace(workers, count=1)


def options_for(args: argparse.Namespace, kind: LabelledKind) -> Any:
    """Returns the options of the kind that are stated; ValueError for those without effect."""
    values = {name: value for name in OPTIONS if (value := getattr(args, name)) is not None}
    values |= thresholds_of(args.threshold or (), kind)
    options = kind.chosen(values)
    check_details(kind, args.details)
    return options


def line_of(prediction: Line, details: bool) -> Line:
    """Returns the line of a prediction, without offsets for official files, and without the best answers of others."""
    hidden = ("meta",) if details else ("meta", "n_best")
    meta = {name: value for name, value in prediction.get("meta", {}).items() if name not in FILES}
    return {name: value for name, value in prediction.items() if name not in hidden} | ({"meta": meta} if meta else {})
