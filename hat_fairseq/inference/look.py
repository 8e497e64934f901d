"""Show what a model looks at in a document, as a page, a picture or JSON.

Attention by units of the text, and the effect of leaving out a unit.
"""

import argparse
import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..analysis.files import picture, pyplot, to_json, write
from ..analysis.page import overview, page, summary
from ..data.columns import columns_of
from ..data.outputs import atomic_directory, check_outputs
from ..data.pipeline import TextPipeline
from ..data.readers import find_reader
from ..data.record import Record
from ..generation.settings import OF_A_PAGE, SEED, add_generation, packaged_options, stated_options
from ..options import options_of, read_options
from ..weights.names import DEMO_NAME
from ..workers import Workers
from . import command, jobs, reading
from .loaded import Loaded
from .look_at import LookOptions, check_stated, look_at, look_or_nothing, model_to_look_at
from .rows import logged_changes
from .texts import seed_sampling

FORMS = {"html": lambda look: page(look).encode(), "png": picture, "out": lambda look: to_json(look).encode()}
SHORT_HELP = (
    *("--html", "--pages", "--png", "--json", "--out", "--overwrite", "--id", "--occlusion", "--reference"),
    *("--split", "--data", "--device"),
)
NAME = 80  # bytes of the id in the name of a page


@dataclass
class Pages(jobs.Job):
    """Makes the page of a document and its line of the overview; None where there is nothing to show."""

    options: LookOptions
    generation: dict[str, Any]
    seed: int = SEED

    def make_model(self, loaded: Loaded) -> Any:
        return model_to_look_at(loaded, self.generation, self.options.reference)

    def lines(self, records: Sequence[Record]) -> list[Any]:
        seed_sampling(self.seed, records)
        looks = [look_or_nothing(self.model, record, self.options) for record in records]
        return [None if look.is_empty else (page(look), summary(look)) for look in looks]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model_and_input(parser, "with the model demo, AMI meetings")
    parser.add_argument("--id", metavar="ID", help="look at the document with this id (default: the first)")
    options_of(LookOptions)["chunk"].add_to(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--html", type=Path, metavar="FILE", help="write the page as one HTML file, for any browser, without a network"
    )
    group.add_argument(
        "--pages", type=Path, metavar="DIR", help="write a page for each document, and index.html, to this new folder"
    )
    group.add_argument("--png", type=Path, metavar="FILE", help="write heat maps of all layers, as in the paper of HAT")
    text = "print texts, weights of all heads, and occlusion as a JSON object"
    group.add_argument("--json", action="store_true", help=text)
    group.add_argument("--out", type=Path, metavar="FILE", help="write the JSON object to this file")
    group.add_argument("--overwrite", action="store_true", help="replace the files of --html, --png and --out")
    for name in ("occlusion", "batch_size", "reference"):
        options_of(LookOptions)[name].add_to(parser)
    add_generation(parser, names=OF_A_PAGE)
    command.add_device(parser)


def main(args: argparse.Namespace) -> int:
    """Reads a document, looks at it and writes the files."""
    options = replace(read_options(LookOptions, args), name="/".join(Path(args.model).parts[-2:]))
    generation = stated_options(args)
    if args.input is None and args.model != DEMO_NAME:
        raise ValueError("say what the model reads: hat look MODEL INPUT")
    files = jobs.model_files(args, args.model)
    packaged = packaged_options(files.path)
    check_stated(generation, packaged, args.reference)
    job = Pages(files, options, packaged | generation)
    if args.pages is not None:
        return write_pages(args, job)
    wanted = {name: path for name in FORMS if (path := getattr(args, name)) is not None}
    if not wanted and not args.json:
        if args.model != DEMO_NAME:
            raise ValueError("say what to write: --html page.html, --png, --out or --json")
        wanted = {"html": Path("look.html")}
    named = {f"--{name}": path for name, path in wanted.items()}
    check_outputs(named, args.overwrite, [args.input, args.data, args.model])
    if args.png:
        pyplot()  # ValueError if it is not installed
    records = records_of(args, job.model.pipeline)
    if args.id is not None:
        records = list(records)  # an id that occurs twice is refused
    record = next((each for each in records if args.id in (None, each.id)), None)
    if record is None:
        raise ValueError(f"{args.input} is empty" if args.id is None else f"{args.input} has no document {args.id!r}")
    reading.check_splitter([record], args.splitter)
    seed_sampling(job.seed, [record])
    with logged_changes(job.model.pipeline):
        look = look_at(job.model, record, job.options)
    with contextlib.redirect_stdout(sys.stderr if args.json else sys.stdout):
        for name, path in wanted.items():
            write(path, FORMS[name](look))
    if args.json:
        print(to_json(look))
    return 0


def records_of(args: argparse.Namespace, pipeline: TextPipeline) -> Iterable[Record]:
    """Returns the documents of INPUT; without it the test meetings of AMI, which the model `demo` summarizes."""
    if args.input is not None:
        columns = columns_of(args.columns, args.number_ids)
        return reading.records_of(args.input, args.split, pipeline.kind, columns, pipeline.settings)
    if args.columns or args.number_ids:
        raise ValueError("--columns and --number-ids are about INPUT, and there is none: remove them")
    return find_reader("ami").read(args.split or command.SPLIT, None, Counter())


def write_pages(args: argparse.Namespace, job: Pages) -> int:
    """Writes the pages of all documents and their overview; ValueError for an option that is for one document."""
    if args.overwrite:
        raise ValueError("--pages replaces no folder: remove --overwrite, and name a new one")
    if others := [f"--{name}" for name in (*FORMS, "json", "id") if getattr(args, name) is not None]:
        raise ValueError(f"--pages is for all documents, {others[0]} for one: give one of them")
    workers = Workers(with_models=True, on_gpus=command.on_gpus(args))
    pipeline = job.files.pipeline(workers)
    records = list(records_of(args, pipeline))
    if not records:
        raise ValueError(f"{args.input} is empty")
    empty = reading.find_empty(records, pipeline, "keep")
    reading.check_splitter(records, args.splitter)
    records = [record for record in records if record.id not in empty]
    summaries, without = {}, [*empty]
    results = jobs.results_of(job, records, 1, "look", args.pages, workers)
    with atomic_directory(args.pages) as folder, results as (lines, _):
        for number, (record, line) in enumerate(zip(records, lines, strict=True), start=1):
            if line is None:
                without.append(record.id)
                continue
            letters = re.sub(r"[^\w.-]+", "_", record.id).encode()[:NAME].decode(errors="ignore")
            path = folder / f"{number:0{len(str(len(records)))}}-{letters}.html"
            content, summaries[path.name] = line
            path.write_text(content, encoding="utf-8")
        (folder / "index.html").write_text(overview(summaries), encoding="utf-8")
    print(f"{args.pages}: {len(summaries)} pages, and index.html")
    if without:
        reason = "they have no text, or one segment only and no attention to show"
        print(f"{len(without)} documents have no page, because {reason}: e.g. {without[0]!r}", file=sys.stderr)
    return 0
