"""Show what a model looks at in a document, as a page or JSON.

Attention by units of the text, and the effect of leaving out a unit.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..analysis.files import to_json, write
from ..analysis.page import page
from ..data.outputs import check_outputs
from ..data.pipeline import TextPipeline
from ..data.readers import find_reader
from ..data.record import Record
from ..generation.settings import SEED, packaged_options
from ..weights.names import DEMO_NAME
from . import command, jobs, reading
from .look_at import OCCLUSION, look_at, model_to_look_at
from .rows import logged_changes
from .texts import seed_sampling

WRITES_STDOUT = True
FORMS = {"html": lambda look: page(look).encode(), "out": lambda look: to_json(look).encode()}
SHORT_HELP = ("--html", "--out", "--overwrite", "--id", "--occlusion", "--split", "--data", "--device")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model_and_input(parser, "with the model demo, AMI meetings")
    parser.add_argument("--id", metavar="ID", help="look at the document with this id (default: the first)")
    group = parser.add_argument_group("output")
    group.add_argument(
        "--html", type=Path, metavar="FILE", help="write the page as one HTML file, for any browser, without a network"
    )
    text = "write texts, weights of all heads, and occlusion as a JSON object to this file; - is the standard output"
    group.add_argument("--out", type=Path, metavar="FILE", help=text)
    group.add_argument("--overwrite", action="store_true", help="replace the files of --html and --out")
    parser.add_argument("--occlusion", action="store_true", help=OCCLUSION)
    command.add_device(parser)


def main(args: argparse.Namespace) -> int:
    """Reads a document, looks at it and writes the files."""
    if args.input is None and args.model != DEMO_NAME:
        raise ValueError("say what the model reads: hat look MODEL INPUT")
    files = jobs.model_files(args, args.model)
    options = packaged_options(files.path)
    wanted = {name: path for name in FORMS if (path := getattr(args, name)) not in (None, command.STDOUT)}
    if not wanted and args.out is None:
        if args.model != DEMO_NAME:
            raise ValueError("say what to write: --html page.html, or --out")
        wanted = {"html": Path("look.html")}
    if args.overwrite and not wanted:
        raise ValueError("--overwrite has no effect with --out -: remove it")
    named = {f"--{name}": path for name, path in wanted.items()}
    check_outputs(named, args.overwrite, [args.input, args.data, args.model])
    model = model_to_look_at(files.load(), options)
    records = records_of(args, model.pipeline)
    if args.id is not None:
        records = list(records)  # an id that occurs twice is refused
    record = next((each for each in records if args.id in (None, each.id)), None)
    if record is None:
        raise ValueError(f"{args.input} is empty" if args.id is None else f"{args.input} has no document {args.id!r}")
    reading.check_splitter([record], args.splitter)
    seed_sampling(SEED, [record])
    with logged_changes(model.pipeline):
        look = look_at(model, record, args.occlusion, "/".join(Path(args.model).parts[-2:]))
    for name, path in wanted.items():
        write(path, FORMS[name](look))
    if args.out == command.STDOUT:
        print(to_json(look), end="")
    return 0


def records_of(args: argparse.Namespace, pipeline: TextPipeline) -> Iterable[Record]:
    """Returns the documents of INPUT; without it the test meetings of AMI, which the model `demo` summarizes."""
    if args.input is not None:
        return reading.records_of(args.input, args.split, pipeline.kind, pipeline.settings)
    return find_reader("ami").read(args.split or command.SPLIT, None, Counter())
