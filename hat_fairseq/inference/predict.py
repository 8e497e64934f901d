"""Predict documents with a fine-tuned encoder: labels, choices, or answers to questions.

The input is raw, or a split of preprocessed data, whose records are read. A file appears under its name when it is
complete. A run that was stopped leaves FILE.partial at most, and the same command starts anew.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..data.kinds import KINDS, Kind, LabelledKind, Prediction
from ..data.manifest import check_files
from ..data.outputs import check_output
from ..data.parallel import progress
from ..data.pipeline import FILE_NAME
from ..data.readers import find_reader
from ..data.record import Record
from ..data.records_json import read_records
from ..data.tables import is_table
from ..package_files import is_package
from ..scoring.official import FILES, dataset_of, without_offsets, write_official_answers
from . import command
from .hub import local_paths
from .labels import BATCH_SIZE, Predictor
from .loading import load, split_with
from .pages import page_paths, report_pages, write_page

Records = Callable[[], Iterable[Record]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="checkpoint or package, or several with colons between: an ensemble"
    )
    text = "JSON lines or a table of records as for hat preprocess, a folder of such files, or one of hat preprocess"
    parser.add_argument("input", metavar="INPUT", type=Path, help=text)
    parser.add_argument("--split", default="test", help="which one of a folder (default: %(default)s)")
    parser.add_argument("--data", type=Path, metavar="BIN", help=command.DATA + ", or INPUT")
    command.add_splitter(parser)
    command.add_out(parser, "predictions to write: .jsonl")
    text = f"samples in a batch (default: {BATCH_SIZE} without --max-tokens)"
    parser.add_argument("--batch-size", type=int, metavar="N", help=text)
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens in a batch, padding included")
    command.add_on_empty(parser)
    text = "write the segments of each document with their weights or labels, too, and the best answers"
    parser.add_argument("--details", action="store_true", help=text)
    layer = "weights of segments from this layer only, from 0 (default: mean of all)"
    parser.add_argument("--layer", type=int, metavar="N", help=layer)
    pages = "also write the page of hat look for each document, with --occlusion where it has one label"
    parser.add_argument("--look", type=Path, metavar="DIR", help=pages)
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
    """Predicts records and writes the predictions, pages, and files for official scorers."""
    command.check_name(args.out)
    inputs = [args.input, *args.model.split(os.pathsep)]
    check_output(args.out, args.overwrite, inputs)
    command.check_batch_size(args.batch_size)
    chosen = {item.name: getattr(args, item.name) for item in _prediction_options()}
    for kind in KINDS.values():  # a mistake is known before the model is loaded
        _options(kind, chosen)
    args.out.parent.mkdir(parents=True, exist_ok=True)  # before the work: this may fail
    model = load_model(args)
    records = records_of(args.input, args.split, model.kind)
    ids, empty = command.find_empty(records(), model.pipeline, args.on_empty)
    if not ids:
        raise ValueError(f"{args.input} is empty: nothing to predict")
    dataset = dataset_of(next(iter(records())))
    for name in [FILES[dataset]] if dataset else model.kind.official([]):
        check_output(args.out.with_name(name), args.overwrite, inputs)
    pages = {} if args.look is None else page_paths(args.look, ids, args.overwrite)
    output = OutputLines(model, pages, args.details, "/".join(Path(args.model).parts[-2:]))
    with_text = (record for record in records() if record.id not in empty)
    options = _options(model.kind, chosen)
    predictions = model.predictions(with_text, args.batch_size, args.max_tokens, options, args.details, args.layer)
    lines = output.lines(records(), predictions, empty)
    written = command.write_lines(args.out, progress(lines, "predict", len(ids)), len(ids))
    for name, content in model.kind.official(output.predictions).items():
        command.write_lines(args.out.with_name(name), [content], indent=1)
    if dataset:
        pairs = ((record, row) for record, row in zip(records(), written, strict=True) if record.id not in empty)
        path = write_official_answers(args.out.parent, dataset, pairs)
        print(f"{path}: for the official scorer of {dataset}")
    report(args.out, model.kind, written, output)
    return 0


def load_model(args: argparse.Namespace) -> Predictor:
    """The model; a checkpoint finds its dictionaries in preprocessed input if `--data` does not say where they are."""
    data = args.data
    if data is None and bin_of(args.input).is_dir() and not is_package(local_paths(args.model).split(os.pathsep)[0]):
        data = bin_of(args.input)
    model = Predictor(load(args.model, data, args.device, args.precision))
    split_with(model, args.splitter)
    if args.look is not None and model.kind.prediction_options:
        raise ValueError("--look is for labels; for a window of a question: hat look --chunk N")
    return model


def report(out: Path, kind: Kind, written: list[dict[str, Any]], output: "OutputLines") -> None:
    """Prints what was written, and warns of elements that preprocessing had truncated."""
    print(f"{out}: {len(written)} predictions")
    if lost := sum(row["labels"].count(None) for row in written if "labels" in row):
        print(f"{lost} {kind.name} were truncated and have no prediction: null among the labels", file=sys.stderr)
    if output.pages:
        report_pages(output.pages, [name for name in output.pages if name not in output.shown])


def bin_of(folder: Path) -> Path:
    """The `bin` directory of a folder of `hat preprocess`, or of its `bin`."""
    return folder if (folder / FILE_NAME).is_file() else folder / "bin"


def records_of(path: Path, split: str, kind: Kind) -> Records:
    """What yields the records of a file, of a split of a folder, or of a split of preprocessed data."""
    if (bin_of(path) / FILE_NAME).is_file():
        check_files(bin_of(path), split, contents=True)
        stored = bin_of(path).resolve().parent / "text" / f"{split}.jsonl"
        if not stored.is_file():
            raise ValueError(f"{stored} is missing: predictions are made from the records; is there a split {split}?")
        return partial(read_records, stored, kind)
    if path.is_dir() and not is_table(path):
        reader = find_reader(f"{path}/", kind.name)
        if split not in reader.splits:
            raise ValueError(f"{path} has no split {split}; it has {', '.join(reader.splits)}: choose one with --split")
        return partial(reader.read, split, None, Counter())
    return partial(read_records, path, kind)


@dataclass
class OutputLines:
    """Makes the lines of the output, and the pages.

    Attributes:
        pages: where the page of each record is written; empty for none.
        predictions: all predictions, where files for official scorers need them.
        shown: ids of the records that have a page.
    """

    model: Predictor
    pages: dict[str, Path]
    details: bool
    name: str
    predictions: list[Prediction] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)

    def lines(
        self, records: Iterable[Record], predictions: Iterator[Prediction], empty: set[str]
    ) -> Iterator[dict[str, Any]]:
        """Yields the object of the line of each record."""
        keeps = bool(self.model.kind.official([]))
        for record in records:
            if record.id in empty:
                yield command.empty_row(record, empty=True)
                continue
            prediction = next(predictions)
            if keeps:
                self.predictions.append(prediction)
            if self.pages and write_page(self.model, record, prediction, self.pages[record.id], self.name):
                self.shown.add(record.id)
            line = prediction if self.details else replace(prediction, n_best=None)
            yield without_offsets(line.to_json())


def _options(kind: Kind, chosen: dict[str, Any]) -> Any:
    """The options of a kind, or None; ValueError for a value out of range."""
    declared = getattr(kind, "prediction_options", None)
    return declared and declared(**{item.name: chosen[item.name] for item in fields(declared)})
