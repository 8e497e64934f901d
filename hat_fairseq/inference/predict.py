"""Predict documents with a fine-tuned encoder: labels, choices, or answers to questions.

The input is raw, or a split of preprocessed data, whose records are read. A run that was stopped goes on where it was.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..data.files import read_json_lines
from ..data.kinds import KINDS, Kind, LabelledKind
from ..data.outputs import check_output
from ..data.pipeline import FILE_NAME
from ..data.record import Record
from ..package_files import is_package
from ..scoring.official import FILES, dataset_of, without_offsets, write_official_answers
from . import command
from .batches import ModelFiles, results_of
from .hub import local_paths
from .inputs import bin_of, records_of
from .jobs import Labels
from .rows import check_batch_size, log_changes

RECORDS = 128  # for a worker at a time, at least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="checkpoint or package, or several with colons between them: an ensemble"
    )
    text = "JSON lines or a table of records as for hat preprocess, a folder of such files, or one of hat preprocess"
    parser.add_argument("input", metavar="INPUT", type=Path, help=text)
    parser.add_argument("--split", default="test", help="split of a folder to read (default: %(default)s)")
    parser.add_argument("--data", type=Path, metavar="BIN", help=command.DATA + ", or INPUT")
    command.add_splitter(parser)
    command.add_out(parser, "predictions to write: .jsonl")
    command.add_batches(parser)
    command.add_on_empty(parser)
    text = "also write the segments of each document with their weights or labels, and the best answers"
    parser.add_argument("--details", action="store_true", help=text)
    layer = "layer that gives the weights of segments, from 0 (default: the mean of all)"
    parser.add_argument("--layer", type=int, metavar="N", help=layer)
    command.add_machine(parser)
    group = parser.add_argument_group("answers to questions")
    for item in _prediction_options():
        flag, name = f"--{item.name.replace('_', '-')}", "N" if item.type == "int" else "X"
        text = f"{item.metadata['help']} (default: {item.default})"
        group.add_argument(flag, type=int if name == "N" else float, metavar=name, default=item.default, help=text)


def _prediction_options() -> list[Any]:
    """The options of all kinds, each once."""
    classes = (kind.prediction_options for kind in KINDS.values() if isinstance(kind, LabelledKind))
    return list({item.name: item for each in classes if each for item in fields(each)}.values())


def main(args: argparse.Namespace) -> int:
    """Predicts records and writes the predictions, and files for official scorers."""
    command.check_name(args.out)
    inputs = [args.input, *args.model.split(os.pathsep)]
    check_output(args.out, args.overwrite, inputs)
    if args.input.exists() and not (args.input.is_file() or args.input.is_dir()):
        raise ValueError(f"{args.input} is no file or folder, and the input is read several times: store it in a file")
    check_batch_size(args.batch_size)
    chosen = {item.name: getattr(args, item.name) for item in _prediction_options()}
    for each in KINDS.values():  # a mistake is known before the models are loaded
        _options(each, chosen)
    workers, files = command.workers_of(args), model_files(args)
    pipeline = files.pipeline(workers)
    kind = pipeline.kind
    if not isinstance(kind, LabelledKind):
        raise ValueError(f"{args.model} was trained on the task {kind.task}: it predicts no labels")
    records = records_of(args.input, args.split, kind)
    ids, empty = command.find_empty(records(), pipeline, args.on_empty)
    if not ids:
        raise ValueError(f"{args.input} is empty: nothing to predict")
    dataset = dataset_of(next(iter(records())))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for name in [FILES[dataset]] if dataset else kind.official([]):
        check_output(args.out.with_name(name), args.overwrite, inputs)
    job = Labels(files, args.batch_size, args.max_tokens, _options(kind, chosen), args.details, args.layer)
    official: list[dict[str, Any]] | None = [] if kind.official([]) else None
    with results_of(job, args.out, workers) as results:
        with_text = (record for record in records() if record.id not in empty)
        size = max(RECORDS, 8 * (args.batch_size or 0))  # enough for batches of rows of similar length
        predictions = results.lines(with_text, size, f"{args.out.stem}: predict", len(ids) - len(empty))
        lines = in_order(records(), predictions, empty, official)
        command.write_lines(args.out, (line_of(line, args.details) for line in lines))
    log_changes(results.counts)
    report(args.out, kind)
    for name, content in kind.official(official or []).items():
        command.write_lines(args.out.with_name(name), [content], indent=1)
    if dataset:
        rows = (row for _, row in read_json_lines(args.out))
        pairs = ((record, row) for record, row in zip(records(), rows, strict=True) if record.id not in empty)
        path = write_official_answers(args.out.parent, dataset, pairs)
        print(f"{path}: for the official scorer of {dataset}")
    return 0


def in_order(
    records: Iterable[Record], predictions: Iterator[dict[str, Any]], empty: set[str], official: list[Any] | None
) -> Iterator[dict[str, Any]]:
    """Yields the line of each record, an empty one for the ids in `empty`; predictions are added to `official`.

    ValueError if the predictions are about other records.
    """
    for record in records:
        if record.id in empty:
            yield command.empty_row(record, empty=True)
            continue
        line = next(predictions, {"id": None})
        if line["id"] != record.id:
            raise ValueError(f"{record.name}: the input changed while it was read; run the command again")
        if official is not None:
            official.append(line)
        yield line


def model_files(args: argparse.Namespace) -> ModelFiles:
    """Returns where the models are; without `--data` a checkpoint finds its dictionaries in preprocessed input."""
    path, data = local_paths(args.model), args.data
    if data is None and (bin_of(args.input) / FILE_NAME).is_file() and not is_package(path.split(os.pathsep)[0]):
        data = bin_of(args.input)
    return ModelFiles(path, data, args.device, args.precision, args.splitter)


def line_of(prediction: dict[str, Any], details: bool) -> dict[str, Any]:
    """Returns the line of a prediction, without the best answers unless details are wanted."""
    return without_offsets({name: value for name, value in prediction.items() if details or name != "n_best"})


def report(out: Path, kind: Kind) -> None:
    """Prints what was written, and warns of elements that preprocessing had truncated."""
    lines = lost = 0
    for _, line in read_json_lines(out):
        lines += 1
        lost += line.get("labels", []).count(None)
    print(f"{out}: {lines} predictions")
    if lost:
        print(f"{lost} {kind.name} were truncated and have no prediction: null among the labels", file=sys.stderr)


def _options(kind: Kind, chosen: dict[str, Any]) -> Any:
    """The options of a kind, or None; ValueError for a value out of range."""
    declared = getattr(kind, "prediction_options", None)
    return declared and declared(**{item.name: chosen[item.name] for item in fields(declared)})
