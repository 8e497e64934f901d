"""Predict documents with a fine-tuned encoder: labels, choices, or answers to questions.

The input is raw, or a split of preprocessed data, whose records are read. A run that was stopped goes on where it was.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..data.kinds import KINDS, LabelledKind, QuestionKind
from ..data.outputs import check_output
from ..data.record import Record
from ..scoring.official import (
    FILES,
    dataset_of,
    null_answer,
    official_files,
    write_official_answers,
    write_squad_answers,
)
from . import command, jobs, reading
from .labels import Predictor, check_details, labelled_kind
from .loaded import Loaded
from .rows import Line, check_batch_size

WRITES_STDOUT = True  # with --out -
RECORDS = 128  # for a worker at a time, at least


@dataclass
class Labels(jobs.Job):
    """Predicts records; see `Predictor.predictions` for the arguments."""

    batch_size: int | None
    max_tokens: int | None
    options: Any
    details: bool

    def make_model(self, loaded: Loaded) -> Predictor:
        return Predictor(loaded)

    def lines(self, records: Sequence[Record]) -> list[Line]:
        sizes = self.batch_size, self.max_tokens
        return [each.to_json() for each in self.model.predictions(records, *sizes, self.options, self.details)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model_and_input(parser)
    command.add_out(parser, "write the predictions as JSON lines to this file, which ends in .jsonl")
    command.add_batches(parser)
    text = "also write the segments of each document with their weights or labels, and the best answers"
    parser.add_argument("--details", action="store_true", help=text)
    command.add_machine(parser)
    group = parser.add_argument_group("answers to questions")
    for item in answer_options().values():
        flag, number = f"--{item.name.replace('_', '-')}", int if item.type in (int, int | None) else float
        text = item.metadata["help"] + ("" if item.default is None else f" (default: {item.default})")
        group.add_argument(flag, type=number, metavar="N" if number is int else "X", help=text)


def answer_options() -> dict[str, Any]:
    """Returns the fields of the options of all kinds, by name."""
    classes = [kind.prediction_options for kind in KINDS.values() if isinstance(kind, LabelledKind)]
    return {item.name: item for each in filter(None, classes) for item in fields(each)}


def main(args: argparse.Namespace) -> int:
    """Predicts records and writes the predictions, and files for official scorers."""
    if args.out.suffix != ".jsonl" and args.out != command.STDOUT:  # predictions.json would be SQuAD's own file
        raise ValueError(f"--out {args.out} must end in .jsonl: predictions are JSON lines")
    inputs = [args.input, args.data, args.model]
    command.check_lines(args.out, args.overwrite, inputs)
    check_batch_size(args.batch_size)
    workers, files = command.workers_of(args), jobs.model_files(args, args.model)
    pipeline = files.pipeline(workers)
    kind = labelled_kind(pipeline, args.model)
    values = {name: value for name in answer_options() if (value := getattr(args, name)) is not None}
    options = kind.chosen(values)
    check_details(kind, args.details)
    is_squad, to_file = kind.name == QuestionKind.name, args.out != command.STDOUT
    if "n_best" in values and not (args.details or (is_squad and to_file)):
        where = "with --out - and" if is_squad else f"on the kind {kind.name}"
        raise ValueError(f"--n-best has no effect {where} without --details, which writes the answers")
    read = reading.read_input(args, pipeline)
    official = official_files(kind.name, read.records[0])
    datasets = list(dict.fromkeys(map(dataset_of, read.records)))
    if to_file and len(datasets) > 1:
        names = " and ".join(name or "no dataset" for name in datasets)
        raise ValueError(f"{args.input} has questions of {names}, whose official files differ: give them one by one")
    if official and not to_file:
        print("with --out - the files for official scorers are not written", file=sys.stderr)

    def check_outputs() -> None:
        command.check_lines(args.out, args.overwrite, inputs)
        for path in map(args.out.with_name, official if to_file else ()):
            if path.is_file() and not args.overwrite:  # its name is fixed
                ways = f"choose another folder for {args.out.name}, or replace it with --overwrite"
                raise ValueError(f"{path}, a file for official scorers, exists: {ways}")
            check_output(path, args.overwrite, inputs)

    check_outputs()
    job = Labels(files, args.batch_size, args.max_tokens, options, args.details)
    size = max(RECORDS, 8 * (args.batch_size or 0))  # enough for batches of rows of similar length
    with jobs.results_of(job, read.with_text, size, f"{args.out.stem}: predict", args.out, workers) as (results, _):
        check_outputs()  # a run that had the lock may have written them
        predictions = list(results)
        check_outputs()  # so may a run with another --out in this folder: files for official scorers have fixed names
        lines = read.in_order(iter(predictions), empty=True)
        command.write_lines(args.out, (line_of(line, args.details) for line in lines))
        if official and to_file:  # before the results are removed, which have more than the lines
            answers = read.in_order(iter(predictions), **null_answer(predictions))
            if (dataset := datasets[0]) is not None:
                write_official_answers(args.out.parent, dataset, zip(read.records, answers, strict=True))
            else:
                write_squad_answers(args.out.parent, answers)
    command.say(args.out, f"{len(lines)} predictions")
    if lost := sum(line.get("labels", []).count(None) for line in predictions):
        print(f"{lost} {kind.name} were truncated and have no prediction: null among the labels", file=sys.stderr)
    if to_file and datasets[0] is not None:
        print(f"{args.out.with_name(official[0])}: for the official scorer of {datasets[0]}")
    return 0


def line_of(prediction: Line, details: bool) -> Line:
    """Returns the line of a prediction, without offsets for official files, and without the best answers of others."""
    hidden = ("meta",) if details else ("meta", "n_best")
    meta = {name: value for name, value in prediction.get("meta", {}).items() if name not in FILES}
    return {name: value for name, value in prediction.items() if name not in hidden} | ({"meta": meta} if meta else {})
