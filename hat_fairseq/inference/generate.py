"""Write texts for documents.

The result has one document a line, in the order of the input. A run that was stopped resumes.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data.record import Record
from ..generation.join_chunks import warn_of_texts
from ..generation.options import check_options
from ..generation.settings import SEED, add_generation, check_generation, packaged_options, stated_options
from ..workers import Workers
from . import command, jobs, reading
from .loaded import Loaded
from .loading import check_writes_texts
from .rows import BATCH_SIZE, OTHER_SEGMENTS, Line, check_batches, longest_first
from .texts import DocumentToText, seed_sampling

WRITES_STDOUT = True  # with --out -
SHORT_HELP = (
    *("--out", "--overwrite", "--split", "--data", "--beam", "--max-len-b", "--batch-size"),
    *("--device", "--precision"),
)
DOCUMENTS = 64  # for a worker at a time, where --max-tokens alone limits a batch


@dataclass
class Texts(jobs.Job):
    """Writes the texts of documents; see `DocumentToText`.

    `seed`: that of sampling; a text depends on it and on the documents of its batch.
    """

    generation: dict[str, Any]
    batch_size: int | None = None
    max_tokens: int | None = None
    seed: int = SEED

    def __post_init__(self) -> None:
        check_options(self.generation)
        check_batches(self.batch_size, self.max_tokens)

    def make_model(self, loaded: Loaded) -> DocumentToText:
        return DocumentToText(loaded, **self.generation)

    def lines(self, documents: Sequence[Record]) -> list[Line]:
        seed_sampling(self.seed, documents)
        return list(self.model.rows(documents, self.batch_size, self.max_tokens))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model_and_input(parser)
    command.add_out(parser, "write the texts to this file as JSON lines (.jsonl) with id, text (and segments)")
    command.add_batches(parser)
    command.add_machine(parser)
    add_generation(parser)


def main(args: argparse.Namespace) -> int:
    """Reads documents, generates and writes their texts."""
    command.check_lines(args.out, args.overwrite, [args.input, args.data, args.model])
    workers, files = command.workers_of(args), jobs.model_files(args, args.model)
    stated, packaged = stated_options(args), packaged_options(files.path)
    check_generation(stated, packaged, args.seed)
    job = Texts(files, packaged | stated, args.batch_size, args.max_tokens, SEED if args.seed is None else args.seed)
    pipeline = files.pipeline(workers)
    check_writes_texts(args.model, pipeline.kind)
    read = reading.read_input(args, pipeline)
    write_texts(job, read, args.out, workers, args.overwrite)
    return 0


def write_texts(job: Texts, read: reading.Input, out: Path, workers: Workers, overwrite: bool) -> None:
    """Writes the line of each record in order, with an empty text for those without text.

    ValueError if `out` exists, unless `overwrite`.

    Documents of similar length are in a batch, the longest ones first.
    """
    order = longest_first(read.with_text)
    size = job.batch_size or (DOCUMENTS if job.max_tokens else BATCH_SIZE)
    with jobs.results_of(job, order, size, f"{out.stem}: generate", out, workers) as (results, counts):
        command.check_lines(out, overwrite, ())  # a run that had the lock may have written it
        by_id = {line["id"]: line for line in results}
        rows = read.in_order((by_id[record.id] for record in read.with_text), text="")
        command.write_lines(out, rows)
    command.say(out, f"{len(rows)} texts")
    warn_of_texts(rows, counts[OTHER_SEGMENTS])
