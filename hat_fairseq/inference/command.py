"""Flags, checks and output files that the commands of inference share."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..data.outputs import atomic_file
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.text import SPLITTERS, EmptyDocumentError
from ..kernels import PRECISIONS
from ..workers import Workers, add_workers
from .rows import Line

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


def add_on_empty(parser: argparse.ArgumentParser) -> None:
    """Declares what becomes of input without text."""
    empty = "input without text: refuse all, or keep its place with an empty row (default: %(default)s)"
    parser.add_argument("--on-empty", choices=("error", "keep"), default="error", help=empty)


def find_empty(records: Iterable[Record], pipeline: TextPipeline, on_empty: str) -> tuple[list[str], set[str]]:
    """Finds the ids of all records, and of those without text; ValueError for such, unless `on_empty` is `keep`."""
    ids, empty = [], set()
    for record in records:
        ids.append(record.id)
        try:
            pipeline.kind.check(record)
            pipeline.kind.prepare(record, pipeline.settings, Counter())
        except EmptyDocumentError as error:
            if on_empty == "error":
                raise ValueError(f"{error}; remove it, or write an empty row for such: --on-empty keep") from None
            empty.add(record.id)
    if empty:
        print(f"{len(empty)} of {len(ids)} documents have no text", file=sys.stderr)
    return ids, empty


def empty_row(record: Record, **fields: Any) -> Line:
    """Returns the line of a record without text."""
    return {"id": record.id, **fields} | ({} if record.meta is None else {"meta": record.meta})


def add_out(parser: argparse.ArgumentParser, text: str) -> None:
    """Declares the file of output."""
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")


def check_name(out: Path) -> None:
    """Raises ValueError if the name of `--out` does not end in .jsonl: `predictions.json` would be SQuAD's own file."""
    if out.suffix != ".jsonl":
        raise ValueError(f"--out {out} must end in .jsonl")


def write_lines(out: Path, lines: Iterable[Any], indent: int | None = None) -> None:
    """Writes one JSON object a line; the file appears when it is complete."""
    with atomic_file(out) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, indent=indent).encode() + b"\n")
