"""Flags, input, checks and output files that the commands of inference share."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..data.kinds import Kind
from ..data.manifest import check_files
from ..data.outputs import atomic_file
from ..data.pipeline import FILE_NAME, TextPipeline
from ..data.readers import find_reader
from ..data.record import Record
from ..data.records_json import read_records
from ..data.tables import is_table
from ..data.text import SPLITTERS, EmptyDocumentError
from ..kernels import PRECISIONS
from ..package_files import is_package
from ..workers import Workers, add_workers
from .batches import ModelFiles
from .hub import local_paths
from .rows import Line

MODEL = "checkpoint or package, or several with colons between them: an ensemble"
DATA = "bin directory that it was trained on (default: that of a folder of hat package)"


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Declares where and how precisely to compute."""
    machine = parser.add_argument_group("machine and precision")
    machine.add_argument("--device", metavar="NAME", help="cpu, cuda or cuda:N (default: a GPU if there is one)")
    group = machine.add_mutually_exclusive_group()
    help_text = "fp32, fp16 (GPU), bf16 (GPU, and CPUs that multiply it) or int8 (CPU) (default: %(default)s)"
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help=help_text)
    for name in ("fp16", "bf16"):
        same: Any = {"dest": "precision", "action": "store_const", "const": name}
        group.add_argument(f"--{name}", help=f"the same as --precision {name}", **same)
    add_workers(machine, "one for each GPU")


def workers_of(args: argparse.Namespace) -> Workers:
    """Returns the workers of the arguments; each has a GPU unless `--device` names another device."""
    return Workers(args.workers, args.cluster, with_models=True, on_gpus=args.device in (None, "cuda"))


def add_splitter(parser: argparse.ArgumentParser) -> None:
    """Declares how running text is split; see `loading.split_with`."""
    text = "how running text is split (default: as in training)"
    parser.add_argument("--splitter", choices=SPLITTERS[1:], help=text)


def add_batches(parser: argparse.ArgumentParser) -> None:
    """Declares the sizes of batches."""
    text = "samples in a batch (default: 8 without --max-tokens)"
    group = parser.add_argument_group("batches")
    group.add_argument("--batch-size", type=int, metavar="N", help=text)
    group.add_argument("--max-tokens", type=int, metavar="N", help="tokens in a batch, padding included")


def add_generation(parser: argparse.ArgumentParser) -> None:
    """Declares the options of generation."""
    text = "fairseq generation options as JSON, e.g. '{\"beam\": 4}'"
    parser.add_argument("--generation", default="{}", metavar="JSON", help=text)


def add_out(parser: argparse.ArgumentParser, text: str) -> None:
    """Declares the file of output, and what becomes of input without text."""
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")
    empty = "input without text: refuse all, or keep its place with an empty row (default: %(default)s)"
    parser.add_argument("--on-empty", choices=("error", "keep"), default="error", help=empty)


def model_files(args: argparse.Namespace, path: str) -> ModelFiles:
    """Returns where the models are; without `--data` a checkpoint finds its dictionaries in preprocessed input."""
    path, data = local_paths(path), getattr(args, "data", None)
    if data is None and not is_package(path.split(os.pathsep)[0]):
        data = bin_of(args.input)
    return ModelFiles(path, data, args.device, args.precision, getattr(args, "splitter", None))


def bin_of(folder: Path) -> Path | None:
    """Returns the `bin` directory of a folder of `hat preprocess`, or of its `bin`; None for another folder."""
    return next((each for each in (folder, folder / "bin") if (each / FILE_NAME).is_file()), None)


def records_of(path: Path, split: str, kind: Kind) -> Iterable[Record]:
    """Reads the records of a file, of a split of a folder, or of a split of preprocessed data."""
    if (folder := bin_of(path)) is not None:
        check_files(folder, split, contents=True)
        stored = folder.resolve().parent / "text" / f"{split}.jsonl"
        if not stored.is_file():
            raise ValueError(f"{stored} is missing: predictions are made from the records; is there a split {split}?")
        return read_records(stored, kind)
    if path.is_dir() and not is_table(path):
        reader = find_reader(f"{path}/", kind.name)
        if split not in reader.splits:
            raise ValueError(f"{path} has no split {split}; it has {', '.join(reader.splits)}: choose one with --split")
        return reader.read(split, None, Counter())
    return read_records(path, kind)


def find_empty(records: Sequence[Record], pipeline: TextPipeline, on_empty: str) -> set[str]:
    """Finds the ids of the records without text; ValueError for such, unless `on_empty` is `keep`."""
    empty = set()
    for record in records:
        try:
            pipeline.kind.check(record)
            pipeline.kind.prepare(record, pipeline.settings, Counter())
        except EmptyDocumentError as error:
            if on_empty == "error":
                raise ValueError(f"{error}; remove it, or write an empty row for such: --on-empty keep") from None
            empty.add(record.id)
    if empty:
        print(f"{len(empty)} of {len(records)} documents have no text", file=sys.stderr)
    return empty


def in_order(records: Iterable[Record], lines: Iterable[Line], without_text: set[str], **fields: Any) -> list[Line]:
    """Returns the line of each record: the next of `lines`, or, for the ids `without_text`, one with the `fields`."""
    lines, rows = iter(lines), []
    for record in records:
        meta = {} if record.meta is None else {"meta": record.meta}
        rows.append({"id": record.id, **fields, **meta} if record.id in without_text else next(lines))
    return rows


def write_lines(out: Path, lines: Iterable[Any], indent: int | None = None) -> None:
    """Writes one JSON object a line; the file appears when it is complete."""
    with atomic_file(out) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, indent=indent).encode() + b"\n")
