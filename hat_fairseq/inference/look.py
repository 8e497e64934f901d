"""Show what a model looks at in a document (page, picture, table, JSON), or the curves of a training (picture)."""

import argparse
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from ..analysis.curves import picture_of_trainings
from ..analysis.files import picture, to_csv, to_json
from ..analysis.page import page
from ..data.outputs import atomic_file, check_folder, check_output
from ..data.record import Record
from ..data.records_json import read_records
from ..generation.options import parse_generation_options
from .command import DATA, add_machine, add_splitter, check_batch_size
from .python import Model

TEXTS = {"out": page, "csv": to_csv, "json": to_json}
FORMS = ("out", "png", "csv", "json")
OF_TRAINING = ("training", "png", "overwrite")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="checkpoint, or folder of hat package")
    text = "draw the training in this --save-dir, with --png; several --training are drawn over each other"
    parser.add_argument("--training", type=Path, action="append", metavar="DIR", help=text)
    parser.add_argument("--data", type=Path, metavar="BIN", help=DATA)
    parser.add_argument("--input", metavar="FILE", help="documents: .jsonl or .jsonl.gz")
    add_splitter(parser)
    parser.add_argument("--id", help="the document to look at (default: the first)")
    parser.add_argument("--chunk", type=int, default=1, metavar="N", help="of a document in several chunks: which")
    parser.add_argument("--out", type=Path, metavar="PAGE", help="one HTML file, for any browser, without a network")
    parser.add_argument("--png", type=Path, metavar="FILE", help="heat maps of all layers, as in the paper of HAT")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="weights for sentences, mean and maximum of the heads")
    parser.add_argument("--json", type=Path, metavar="FILE", help="texts, weights of all heads, and occlusion")
    parser.add_argument("--overwrite", action="store_true", help="replace these files")
    text = "also leave out one sentence (or segment) at a time: the change in log-probability of the output"
    parser.add_argument("--occlusion", action="store_true", help=text)
    parser.add_argument("--reference", action="store_true", help="the document's own target, not a generated one")
    parser.add_argument("--generation", default="{}", help="fairseq generation options as JSON, e.g. '{\"beam\": 4}'")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N", help="of --occlusion (default: %(default)s)")
    add_machine(parser)


def main(args: argparse.Namespace) -> int:
    """Reads a document, looks at it and writes the files."""
    if args.training is not None:
        return draw_training(args)
    if args.model is None or args.input is None:
        raise ValueError("give a model and --input: which model looks, and at which documents")
    wanted = outputs(args)
    check_batch_size(args.batch_size)
    options = parse_generation_options(args.generation, "--generation")
    model = Model(args.model, args.data, args.device, args.precision)
    record = find(args.input, args.id, model.kind)
    look = model.look(record, args.occlusion, args.chunk, args.batch_size, args.reference, args.splitter, **options)
    for name, path in wanted.items():
        write(path, picture(look) if name == "png" else TEXTS[name](look).encode())
    return 0


def outputs(args: argparse.Namespace) -> dict[str, Path]:
    """The files to write, by form; ValueError for none, one that exists, or one that cannot be written."""
    wanted = {name: path for name in FORMS if (path := getattr(args, name)) is not None}
    if not wanted:
        raise ValueError("say what to write: --out page.html, --png, --csv or --json")
    for name, path in wanted.items():
        check_folder(path, f"--{name}")
        check_output(path, args.overwrite, [args.input, args.model], f"--{name}")
    if len({path.resolve() for path in wanted.values()}) < len(wanted):
        raise ValueError("two of --out, --png, --csv and --json name the same file")
    if args.png and find_spec("matplotlib") is None:
        raise ValueError("--png needs matplotlib: pip install 'hat_fairseq[look]'")
    return wanted


def draw_training(args: argparse.Namespace) -> int:
    """Writes the curves of one or more trainings."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    defaults = vars(parser.parse_args([]))
    if others := [name for name in defaults if name not in OF_TRAINING and getattr(args, name) != defaults[name]]:
        raise ValueError(f"--training draws with --png only: remove {', '.join(others)}")
    write(outputs(args)["png"], picture_of_trainings(args.training))
    return 0


def find(path: str, name: str | None, kind: str) -> Record:
    """The document with this id, or the first one; ValueError if there is none."""
    records = (record for record in read_records(path, kind) if name in (None, record.id))
    for record in islice(records, 1):
        return record
    raise ValueError(f"{path} is empty" if name is None else f"{path} has no document with the id {name!r}")


def write(path: Path, content: bytes) -> None:
    """Writes a file in one step, and says so."""
    with atomic_file(path) as file:
        file.write(content)
    print(f"wrote {path} ({len(content):,} bytes)")
