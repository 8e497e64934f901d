"""Classify raw documents with a fine-tuned encoder, with a weight for each segment."""

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..analysis.page import page
from ..data.outputs import atomic_file, check_folder, check_output
from ..data.parallel import progress
from ..data.record import Record
from ..data.records_json import read_records
from . import command
from .assemble import Prediction
from .labels import DocumentClassifier
from .loading import split_with
from .look_labels import look_at_labels
from .look_units import LookOptions

NAME = 80  # bytes of the name of a page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    examples = "examples as for hat preprocess, labels not needed: .jsonl or .jsonl.gz"
    command.add_raw_input(parser, "a fine-tuned checkpoint or package", examples, "predictions to write: .jsonl")
    layer = "weights of segments from this layer only, from 0 (default: mean of all)"
    parser.add_argument("--layer", type=int, metavar="N", help=layer)
    pages = "also write the page of hat look for each document, with --occlusion where it has one label"
    parser.add_argument("--look", type=Path, metavar="DIR", help=pages)
    command.add_answers(parser)


def main(args: argparse.Namespace) -> int:
    """Classifies examples and writes their records and pages; warns about truncation."""
    command.check_name(args.out)
    check_folder(args.out)
    check_output(args.out, args.overwrite, [args.input, args.path])
    command.check_batch_size(args.batch_size)
    options = command.answer_options(args)
    model = DocumentClassifier.from_pretrained(
        args.path, args.data, args.device, args.precision, layer=args.layer, options=options
    )
    split_with(model.task, args.splitter)
    examples = list(read_records(args.input, model.task.kind))
    if not examples:
        raise ValueError(f"{args.input} is empty: nothing to classify")
    pages = {} if args.look is None else page_paths(args.look, examples, args.overwrite, model.task.kind)
    rows_of = partial(model.rows, batch_size=args.batch_size)
    rows = command.rows_in_order(examples, rows_of, model.pipeline, args.on_empty, {"empty": True})
    records = command.write_lines(args.out, progress(rows, "classify", len(examples)), len(examples))
    command.report(args.out, model.task.kind, model.rows_cut, records)
    if args.look is not None:
        look = LookOptions(occlusion=None, batch_size=args.batch_size, name="/".join(Path(args.path).parts[-2:]))
        write_pages(model, examples, records, pages, look)
    return 0


def page_paths(folder: Path, examples: Iterable[Record], overwrite: bool, kind: str) -> dict[str, Path]:
    """The page of each document by its id, all different; ValueError for answers, or a folder or page in the way."""
    if kind in ("qa", "document_qa"):
        raise ValueError("--look is for labels; for a window of a question: hat look --chunk N")
    check_folder(folder, "--look")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--look {folder} is a file; name a folder")
    paths: dict[str, Path] = {}
    taken: set[str] = set()
    for example in examples:
        letters = re.sub(r"[^\w.-]+", "_", example.id).encode()[:NAME].decode(errors="ignore")
        name = stem = letters.strip("._") or "document"
        number = 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        paths[example.id] = folder / f"{name}.html"
        check_output(paths[example.id], overwrite, (), "--look")
    return paths


def write_pages(
    model: DocumentClassifier,
    examples: Iterable[Record],
    records: Iterable[Prediction],
    paths: dict[str, Path],
    options: LookOptions,
) -> None:
    """Writes the page of each document, of a choice the chosen one, and says what has none, or another name."""
    written, nothing = 0, []
    for example, record in zip(examples, progress(records, "look", len(paths)), strict=True):
        chosen = int(record["label"]) if model.task.kind == "choice" and "label" in record else 0
        look = None
        if not record.get("empty"):
            look = look_at_labels(model, example, replace(options, chunk=chosen + 1))
        if look is None or not (look.maps or look.occlusion):
            nothing.append(example.id)
            continue
        path = paths[example.id]
        path.parent.mkdir(exist_ok=True)
        with atomic_file(path) as file:
            file.write(page(look).encode())
        written += 1
    folder = next(iter(paths.values())).parent
    print(f"{folder}: {written} pages")
    if renamed := [name for name, path in paths.items() if path.stem != name]:
        print(f"{len(renamed)} pages have another name than the id, e.g. {paths[renamed[0]].name}", file=sys.stderr)
    if nothing:
        print(
            f"{len(nothing)} documents have no page, because they have no text, or one segment only and no attention "
            f"to show: e.g. {nothing[0]!r}",
            file=sys.stderr,
        )
