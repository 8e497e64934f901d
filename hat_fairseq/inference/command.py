"""Flags, checks and output files that `hat summarize` and `hat predict` share."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..data.clean import EmptyDocumentError
from ..data.outputs import locked, named_errors
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.text import SPLITTERS
from ..kernels import PRECISIONS
from .rows import Line

DATA = "bin directory that it was trained on (default: that of a folder of hat package)"


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Declares where and how precisely to compute."""
    parser.add_argument("--device", help="default: a GPU if there is one")
    group = parser.add_mutually_exclusive_group()
    help_text = "fp32, fp16 (GPU), bf16 (GPU, and CPUs that multiply it) or int8 (CPU) (default: %(default)s)"
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help=help_text)
    for name in ("fp16", "bf16"):
        same: Any = {"dest": "precision", "action": "store_const", "const": name}
        group.add_argument(f"--{name}", help=f"the same as --precision {name}", **same)


def add_splitter(parser: argparse.ArgumentParser) -> None:
    """Declares how running text is split; see `loading.split_with`."""
    text = "how running text is split (default: as in training)"
    parser.add_argument("--splitter", choices=SPLITTERS[1:], help=text)


def add_raw_input(parser: argparse.ArgumentParser, path: str, source: str, out: str) -> None:
    """Declares a model, raw input and a file of output; the arguments are the help texts of `--path` and the files."""
    parser.add_argument("--path", required=True, help=path)
    parser.add_argument("--data", type=Path, metavar="BIN", help=DATA)
    parser.add_argument("--input", required=True, metavar="FILE", help=source)
    add_splitter(parser)
    add_out(parser, out)
    parser.add_argument("--batch-size", type=int, default=1, metavar="N", help="(default: %(default)s)")
    add_on_empty(parser)
    add_machine(parser)


def add_on_empty(parser: argparse.ArgumentParser) -> None:
    """Declares what becomes of input without text."""
    empty = "input without text: refuse all, or keep its place with an empty row (default: %(default)s)"
    parser.add_argument("--on-empty", choices=("error", "keep"), default="error", help=empty)


def find_empty(records: Iterable[Record], pipeline: TextPipeline, on_empty: str) -> tuple[list[str], set[str]]:
    """The ids of all records, and of those without text; ValueError for such, unless `on_empty` is `keep`."""
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
        print(f"{len(empty)} of {len(ids)} documents have no text and get an empty row", file=sys.stderr)
    return ids, empty


def empty_row(record: Record, **fields: Any) -> Line:
    """The line of a record without text."""
    return {"id": record.id, **fields} | ({} if record.meta is None else {"meta": record.meta})


def add_out(parser: argparse.ArgumentParser, text: str) -> None:
    """Declares the file of output."""
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help=text)
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --out")


def check_batch_size(batch_size: int | None) -> None:
    """Raises ValueError if `batch_size` is below 1."""
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"the batch size must be at least 1, not {batch_size}")


def check_name(out: Path) -> None:
    """Raises ValueError if the name of `--out` does not end in .jsonl: `predictions.json` would be SQuAD's own file."""
    if out.suffix != ".jsonl":
        raise ValueError(f"--out {out} must end in .jsonl")


def write_lines(out: Path, records: Iterable[Any], expected: int | None = None, indent: int | None = None) -> list[Any]:
    """Writes one JSON object a line, each at once, to OUT.partial until all `expected` are there; returns them."""
    partial = out.with_name(f"{out.name}.partial")
    written = []
    with (
        named_errors(partial),
        partial.open("a", encoding="utf-8", newline="\n") as lines,
        locked(partial, f"another process is writing {partial}; name another file with --out"),
    ):
        lines.truncate(0)
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False, indent=indent) + "\n")
            lines.flush()
            written.append(record)
        if expected not in (None, len(written)):
            raise ValueError(f"{partial}: {len(written)} records were written, and {expected} are expected")
        os.replace(partial, out)
    return written
