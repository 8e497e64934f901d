"""What the commands of inference share: flags and files of output. `reading.py` reads INPUT, `jobs.py` computes."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..data.files import json_lines
from ..data.options import SPLITTERS
from ..data.outputs import atomic_file, check_output, named_errors
from ..kernels import AUTO, PRECISIONS
from ..options import options_of
from ..workers import Workers, add_workers
from .rows import BatchOptions

MODEL = "the checkpoint or folder of a model, demo, meeting, or USER/NAME on the Hugging Face Hub; "
MODEL += "several with : between them are an ensemble"
DATA = "the bin directory of the training data (default: the one in the folder of the model, or INPUT for a checkpoint)"
INPUT = "the records to read: JSON lines, a table, a text, a folder of splits, or a folder of hat preprocess; - is the "
INPUT += "standard input"
STDOUT = Path("-")  # as a value of --out: the standard output
SPLIT = "test"


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Declares where and how precisely to compute, with how many workers."""
    add_workers(add_device(parser), "one for each GPU")


def add_device(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declares where and how precisely one process computes."""
    machine = parser.add_argument_group("machine and precision")
    machine.add_argument(
        "--device", metavar="NAME", help="compute on cpu, cuda or cuda:N (default: a GPU if there is one)"
    )
    help_text = "compute in fp32, fp16 (GPU), bf16 (GPU, CPUs that multiply it), int8 (CPUs with VNNI), or auto: bf16 "
    help_text += "where it is multiplied fast, else fp32 (default: %(default)s)"
    machine.add_argument("--precision", choices=(*PRECISIONS, AUTO), default="fp32", help=help_text)
    return machine


def say_precision(wanted: str, chosen: str) -> None:
    """Says which precision is used where the command was told to choose it."""
    if wanted == AUTO:
        print(f"precision: {chosen} (chosen by --precision {AUTO})", file=sys.stderr)


def workers_of(args: argparse.Namespace) -> Workers:
    """Returns the workers of the arguments; each has a GPU unless `--device` names another device.

    ValueError for a precision that each machine would choose by itself.
    """
    if args.cluster and getattr(args, "precision", None) == "auto":
        raise ValueError("--precision auto may choose another one on each machine of --cluster: name one, e.g. fp32")
    return Workers(args.workers, args.cluster, with_models=True, on_gpus=on_gpus(args))


def on_gpus(args: argparse.Namespace) -> bool:
    """Returns whether each worker has a GPU, where there are any."""
    return args.device in (None, "cuda")


def add_model_and_input(parser: argparse.ArgumentParser, default: str | None = None, model: str = MODEL) -> None:
    """Declares what all commands read: MODEL and INPUT.

    `default`: what is read without INPUT; `model`: which models the command reads.
    """
    parser.add_argument("model", metavar="MODEL", help=model)
    text = INPUT if default is None else f"{INPUT} (default: {default})"
    parser.add_argument("input", metavar="INPUT", type=Path, nargs="?" if default else None, help=text)
    add_split(parser)
    add_data(parser)
    add_splitter(parser)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Declares where the dictionaries are; see `jobs.model_files`."""
    parser.add_argument("--data", type=Path, metavar="BIN", help=DATA)


def add_splitter(
    parser: argparse.ArgumentParser, text: str = "split running text in this way (default: as in training)"
) -> None:
    """Declares how running text is split; see `loading.split_with`."""
    parser.add_argument("--splitter", choices=SPLITTERS[1:], help=text)


def add_batches(parser: argparse.ArgumentParser) -> None:
    """Declares the sizes of batches."""
    group = parser.add_argument_group("batches")
    for each in options_of(BatchOptions).values():
        each.add_to(group)


def add_split(parser: argparse.ArgumentParser) -> None:
    """Declares the split of a folder; None for the usual one."""
    parser.add_argument("--split", metavar="SPLIT", help=f"read this split of a folder (default: {SPLIT})")


def add_out(parser: argparse.ArgumentParser, text: str) -> None:
    """Declares the file of output, and what becomes of input without text."""
    text += "; - is the standard output"
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")
    empty = "refuse an input with a document without text, or write an empty row for it (default: %(default)s)"
    parser.add_argument("--on-empty", choices=("error", "keep"), default="error", help=empty)


def check_lines(out: Path, overwrite: bool, inputs: Iterable[str | Path | None]) -> None:
    """Refuses to replace a file of lines, as `check_output`; and --overwrite where no file is written."""
    if out != STDOUT:
        check_output(out, overwrite, inputs)
    elif overwrite:
        raise ValueError("--overwrite has no effect with --out -: remove it")


def say(out: Path, text: str) -> None:
    """Prints what was written to `out`: to stderr where the lines themselves are the standard output."""
    if out == STDOUT:
        print(f"wrote {text}", file=sys.stderr)
    else:
        print(f"{out}: {text}")


def write_lines(out: Path, lines: Iterable[Any]) -> None:
    """Writes one JSON object a line; the file appears when it is complete."""
    if out != STDOUT:
        with atomic_file(out) as file:
            file.writelines(json_lines(lines))
        return
    with named_errors(Path("standard output")):
        sys.stdout.buffer.writelines(json_lines(lines))
        sys.stdout.buffer.flush()
