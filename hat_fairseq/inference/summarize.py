"""Write texts for the documents of a file, preprocessed like the training data."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..data.blocks import digest
from ..data.columns import add_columns, columns_of
from ..data.outputs import check_folder
from ..data.record import Record
from ..data.records_json import json_line, read_records
from ..generation.join_chunks import warn_of_texts
from ..generation.options import check_options
from ..generation.settings import add_generation, given_options, packaged_options
from ..workers import Workers
from . import command
from .loading import Loaded, check_writes_texts
from .rows import BATCH_SIZE, OTHER_SEGMENTS, Line, check_batch_size, log_changes, longest_first
from .texts import DocumentToText

WRITES_STDOUT = True  # with --out -
DOCUMENTS = 64  # for a worker at a time, where --max-tokens alone limits a batch


@dataclass
class Texts(command.Job):
    """Writes the texts of documents; see `DocumentToText`.

    `seed`: that of sampling; a text depends on it and on the documents of its batch.
    """

    generation: dict[str, Any]
    batch_size: int | None = None
    max_tokens: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        check_options(self.generation, "generation")
        check_batch_size(self.batch_size)

    def make_model(self, loaded: Loaded) -> DocumentToText:
        return DocumentToText(loaded, **packaged_options(self.files.path) | self.generation)

    def lines(self, documents: Sequence[Record]) -> list[Line]:
        torch.manual_seed(int(digest(self.seed, *map(json_line, documents))[:15], 16))
        return list(self.model.rows(documents, self.batch_size, self.max_tokens))


def write_texts(job: Texts, records: Sequence[Record], empty: set[str], out: Path, workers: Workers) -> None:
    """Writes the line of each record in order, with an empty text for those without text, the ids in `empty`.

    Documents of similar length are in a batch, the longest ones first.
    """
    order = longest_first(record for record in records if record.id not in empty)
    size = job.batch_size or (DOCUMENTS if job.max_tokens else BATCH_SIZE)
    with command.results_of(job, order, size, f"{out.stem}: write", out, workers) as (results, counts):
        by_id = {line["id"]: line for line in results}
        lines = (by_id[record.id] for record in records if record.id in by_id)
        rows = command.in_order(records, lines, empty, text="")
        command.write_lines(out, rows)
    command.say(out, f"{len(rows)} texts")
    warn_of_texts(rows, counts[OTHER_SEGMENTS])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--path", required=True, help=command.MODEL)
    parser.add_argument("--data", type=Path, metavar="BIN", help=command.DATA)
    parser.add_argument("--input", required=True, type=Path, metavar="FILE", help="documents: JSON or a table")
    add_columns(parser)
    command.add_splitter(parser)
    command.add_out(parser, "texts to write: .jsonl with id, text (and segments)")
    command.add_batches(parser)
    command.add_machine(parser)
    add_generation(parser)


def main(args: argparse.Namespace) -> int:
    """Reads documents, generates and writes their texts."""
    check_folder(args.out)
    command.check_lines(args.out, args.overwrite, [args.input, args.data, *args.path.split(os.pathsep)])
    workers, files = command.workers_of(args), command.model_files(args, args.path)
    options = given_options(args)
    job = Texts(files, options, args.batch_size, args.max_tokens)
    pipeline = files.pipeline(workers)
    check_writes_texts(files.path, pipeline.kind)
    columns = columns_of(args.columns, args.number_ids)
    documents = list(read_records(args.input, columns=columns, counts=(skipped := Counter[str]())))
    log_changes(skipped)
    if not documents:
        raise ValueError(f"{args.input} is empty: nothing to summarize")
    command.check_splitter(documents, args.splitter)
    write_texts(job, documents, command.find_empty(documents, pipeline, args.on_empty), args.out, workers)
    return 0
