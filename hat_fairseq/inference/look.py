"""Show what a model looks at in a document: a page, a picture, JSON."""

import argparse
from itertools import islice
from pathlib import Path
from typing import Any

from ..analysis.files import picture, pyplot, to_json, write
from ..analysis.page import page
from ..data.kinds import Kind
from ..data.outputs import check_folder, check_output
from ..data.record import Record
from ..generation.options import parse_generation_options
from .batches import ModelFiles
from .command import DATA, add_machine, add_splitter, find_empty, workers_of
from .hub import local_paths
from .inputs import records_of
from .jobs import Pages
from .look_units import LookOptions
from .pages import page_paths, report_pages, write_pages
from .python import Model, check_for_kind
from .rows import check_batch_size

FORMS = {"out": lambda look: page(look).encode(), "png": picture, "json": lambda look: to_json(look).encode()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="checkpoint or package")
    parser.add_argument("--data", type=Path, metavar="BIN", help=DATA)
    text = "documents: JSON lines, a table, a folder of such files, or a folder of hat preprocess"
    parser.add_argument("--input", required=True, type=Path, metavar="INPUT", help=text)
    parser.add_argument("--split", default="test", help="split of a folder to read (default: %(default)s)")
    add_splitter(parser)
    parser.add_argument("--id", metavar="ID", help="document to look at (default: the first)")
    parser.add_argument(
        "--chunk",
        type=int,
        default=1,
        metavar="N",
        help="number of the chunk of a divided document (default: %(default)s)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--out", type=Path, metavar="PAGE", help="one HTML file, for any browser, without a network")
    group.add_argument("--pages", type=Path, metavar="DIR", help="such a file for each document, and index.html")
    group.add_argument("--png", type=Path, metavar="FILE", help="heat maps of all layers, as in the paper of HAT")
    group.add_argument("--json", type=Path, metavar="FILE", help="texts, weights of all heads, and occlusion")
    group.add_argument("--overwrite", action="store_true", help="replace these files")
    text = "also leave out one sentence (or segment) at a time: the change in log-probability of the output"
    parser.add_argument("--occlusion", action="store_true", help=text)
    parser.add_argument("--reference", action="store_true", help="show the document's own target, not a generated one")
    parser.add_argument(
        "--generation", default="{}", metavar="JSON", help="fairseq generation options as JSON, e.g. '{\"beam\": 4}'"
    )
    parser.add_argument(
        "--batch-size",
        type=int,
        default=8,
        metavar="N",
        help="samples in a batch of --occlusion (default: %(default)s)",
    )
    add_machine(parser)


def main(args: argparse.Namespace) -> int:
    """Reads a document, looks at it and writes the files."""
    check_batch_size(args.batch_size)
    options = parse_generation_options(args.generation, "--generation")
    if args.pages is not None:
        return look_at_all(args, options)
    if args.workers or args.cluster:
        raise ValueError("--workers and --cluster are for --pages: one document has one process")
    wanted = outputs(args)
    model = Model(args.model, args.data, args.device, args.precision)
    record = find(args, model.pipeline.kind)
    look = model.look(record, args.occlusion, args.chunk, args.batch_size, args.reference, args.splitter, **options)
    for name, path in wanted.items():
        write(path, FORMS[name](look))
    return 0


def outputs(args: argparse.Namespace) -> dict[str, Path]:
    """The files to write, by form; ValueError for none, one that exists, or one that cannot be written."""
    wanted = {name: path for name in FORMS if (path := getattr(args, name)) is not None}
    if not wanted:
        raise ValueError("say what to write: --out page.html, --png or --json")
    for name, path in wanted.items():
        check_folder(path, f"--{name}")
        check_output(path, args.overwrite, [args.input, args.model], f"--{name}")
    if len({path.resolve() for path in wanted.values()}) < len(wanted):
        raise ValueError("two of --out, --png and --json name the same file")
    if args.png:
        pyplot()  # ValueError if it is not installed
    return wanted


def look_at_all(args: argparse.Namespace, generation: dict[str, Any]) -> int:
    """Writes the pages of all documents; ValueError for an option that is for one document."""
    if others := [f"--{name}" for name in (*FORMS, "id") if getattr(args, name) is not None]:
        raise ValueError(f"--pages is for all documents, {others[0]} for one: give one of them")
    if args.chunk != 1:
        raise ValueError("--pages shows the first chunk of each document: remove --chunk")
    workers = workers_of(args)
    files = ModelFiles(local_paths(args.model), args.data, args.device, args.precision, args.splitter)
    pipeline = files.pipeline(workers)
    check_for_kind(pipeline.kind, args.reference, generation)
    records = list(records_of(args.input, args.split, pipeline.kind)())
    if not records:
        raise ValueError(f"{args.input} is empty")
    ids, empty = find_empty(records, pipeline, "keep")
    paths = page_paths(args.pages, ids, args.overwrite)
    name = "/".join(Path(args.model).parts[-2:])
    job = Pages(files, LookOptions(args.occlusion or None, None, args.batch_size, name), args.reference, generation)
    without = write_pages(job, [record for record in records if record.id not in empty], paths, workers)
    report_pages(paths, [*empty, *without])
    return 0


def find(args: argparse.Namespace, kind: Kind) -> Record:
    """The document with the id of the arguments, or the first one; ValueError if there is none."""
    records = (each for each in records_of(args.input, args.split, kind)() if args.id in (None, each.id))
    for record in islice(records, 1):
        return record
    raise ValueError(f"{args.input} is empty" if args.id is None else f"{args.input} has no document {args.id!r}")
