"""Show what a model looks at in a document: a page, a picture, JSON."""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..analysis.files import picture, pyplot, to_json, write
from ..analysis.page import overview, page, summary
from ..data.outputs import atomic_directory, check_folder, check_output
from ..data.record import Record
from ..generation.options import packaged_options, parse_generation_options
from . import command
from .batches import Job, ModelFiles, results_of
from .loading import Loaded
from .looking import LookOptions, look_at, model_to_look_at
from .python import Model
from .rows import check_batch_size, log_changes

FORMS = {"out": lambda look: page(look).encode(), "png": picture, "json": lambda look: to_json(look).encode()}
NAME = 80  # bytes of the id in the name of a page


@dataclass
class Pages(Job):
    """Makes the page of a document and its line of the overview; None where there is nothing to show."""

    files: ModelFiles
    options: LookOptions
    generation: dict[str, Any]

    def make_model(self, loaded: Loaded) -> Any:
        return model_to_look_at(loaded, packaged_options(self.files.path) | self.generation, self.options.reference)

    def lines(self, records: Sequence[Record]) -> list[Any]:
        looks = [look_at(self.model, record, self.options) for record in records]
        return [(page(look), summary(look)) if look.maps or look.occlusion else None for look in looks]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="checkpoint or package")
    parser.add_argument("--data", type=Path, metavar="BIN", help=command.DATA)
    text = "documents: JSON lines, a table, a folder of such files, or a folder of hat preprocess"
    parser.add_argument("--input", required=True, type=Path, metavar="INPUT", help=text)
    parser.add_argument("--split", default="test", help="split of a folder to read (default: %(default)s)")
    command.add_splitter(parser)
    parser.add_argument("--id", metavar="ID", help="document to look at (default: the first)")
    text = "number of the chunk of a divided document (default: the first; of choices the predicted one)"
    parser.add_argument("--chunk", type=int, metavar="N", help=text)
    group = parser.add_argument_group("output")
    group.add_argument("--out", type=Path, metavar="PAGE", help="one HTML file, for any browser, without a network")
    group.add_argument("--pages", type=Path, metavar="DIR", help="such a file for each document, and index.html")
    group.add_argument("--png", type=Path, metavar="FILE", help="heat maps of all layers, as in the paper of HAT")
    group.add_argument("--json", type=Path, metavar="FILE", help="texts, weights of all heads, and occlusion")
    group.add_argument("--overwrite", action="store_true", help="replace these files (not --pages)")
    text = "also leave out one sentence (or segment) at a time: the change in log-probability of the output"
    parser.add_argument("--occlusion", action="store_true", help=text)
    parser.add_argument("--reference", action="store_true", help="show the document's own target, not a generated one")
    command.add_generation(parser)
    text = "samples in a batch of --occlusion (default: %(default)s)"
    parser.add_argument("--batch-size", type=int, default=8, metavar="N", help=text)
    command.add_machine(parser)


def main(args: argparse.Namespace) -> int:
    """Reads a document, looks at it and writes the files."""
    check_batch_size(args.batch_size)
    generation = parse_generation_options(args.generation, "--generation")
    if args.pages is not None:
        return write_pages(args, generation)
    if args.workers or args.cluster:
        raise ValueError("--workers and --cluster are for --pages: one document has one process")
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
    model = Model(args.model, args.data or command.model_files(args, args.model).data, args.device, args.precision)
    records = command.records_of(args.input, args.split, model.pipeline.kind)
    record = next((each for each in records if args.id in (None, each.id)), None)
    if record is None:
        raise ValueError(f"{args.input} is empty" if args.id is None else f"{args.input} has no document {args.id!r}")
    more = args.occlusion, args.chunk, args.batch_size, args.reference, args.splitter
    look = model.look(record, *more, **generation)
    for name, path in wanted.items():
        write(path, FORMS[name](look))
    return 0


def write_pages(args: argparse.Namespace, generation: dict[str, Any]) -> int:
    """Writes the pages of all documents and their overview; ValueError for an option that is for one document."""
    if others := [f"--{name}" for name in (*FORMS, "id") if getattr(args, name) is not None]:
        raise ValueError(f"--pages is for all documents, {others[0]} for one: give one of them")
    workers, files = command.workers_of(args), command.model_files(args, args.model)
    pipeline = files.pipeline(workers)
    records = list(command.records_of(args.input, args.split, pipeline.kind))
    if not records:
        raise ValueError(f"{args.input} is empty")
    empty = command.find_empty(records, pipeline, "keep")
    records = [record for record in records if record.id not in empty]
    name = "/".join(Path(args.model).parts[-2:])
    options = LookOptions(name, args.occlusion, args.chunk, args.batch_size, args.reference)
    summaries, without = {}, [*empty]
    with (
        atomic_directory(args.pages) as folder,
        results_of(Pages(files, options, generation), args.pages, workers) as results,
    ):
        for number, line in enumerate(results.lines(records, 1, "look")):
            if line is None:
                without.append(records[number].id)
                continue
            letters = re.sub(r"[^\w.-]+", "_", records[number].id).encode()[:NAME].decode(errors="ignore")
            path = folder / f"{number + 1:0{len(str(len(records)))}}-{letters}.html"
            content, summaries[path.name] = line
            path.write_text(content, encoding="utf-8")
        (folder / "index.html").write_text(overview(summaries), encoding="utf-8")
    log_changes(results.counts)
    print(f"{args.pages}: {len(summaries)} pages, and index.html")
    if without:
        reason = "they have no text, or one segment only and no attention to show"
        print(f"{len(without)} documents have no page, because {reason}: e.g. {without[0]!r}", file=sys.stderr)
    return 0
