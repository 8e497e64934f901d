"""Write texts for the documents of a file, preprocessed like the training data."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from ..data.outputs import check_folder, check_output
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.records_json import read_records
from ..generation.join_chunks import warn_of_texts
from ..generation.options import parse_generation_options
from ..workers import Workers
from . import command
from .batches import ModelFiles, results_of
from .hub import local_paths
from .jobs import OTHER_SEGMENTS, Texts
from .loading import check_writes_texts
from .rows import BATCH_SIZE, log_changes, longest_first

DOCUMENTS = 64  # for a worker at a time, where --max-tokens alone limits a batch


def pipeline_of(files: ModelFiles, workers: Workers) -> TextPipeline:
    """Returns the pipeline of models that write texts; ValueError for others."""
    pipeline = files.pipeline(workers)
    check_writes_texts(files.path, pipeline.kind)
    return pipeline


def write_texts(job: Texts, records: Sequence[Record], empty: set[str], out: Path, workers: Workers) -> None:
    """Writes the line of each record in order, with an empty text for those without text, the ids in `empty`.

    Documents of similar length are in a batch, the longest ones first.
    """
    order = longest_first(record for record in records if record.id not in empty)
    with results_of(job, out, workers) as results:
        size = job.batch_size or (DOCUMENTS if job.max_tokens else BATCH_SIZE)
        written = results.lines(order, size, f"{out.stem}: write", len(order))
        lines = {line["id"]: line for line in written}
        rows = [lines[each.id] if each.id in lines else command.empty_row(each, text="") for each in records]
        command.write_lines(out, rows)
    other_segments = results.counts.pop(OTHER_SEGMENTS, 0)
    log_changes(results.counts)
    print(f"{out}: {len(rows)} texts")
    warn_of_texts(rows, other_segments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--path", required=True, help="checkpoint or package, or several with colons between them: an ensemble"
    )
    parser.add_argument("--data", type=Path, metavar="BIN", help=command.DATA)
    parser.add_argument("--input", required=True, metavar="FILE", help="documents: .jsonl, .jsonl.gz")
    command.add_splitter(parser)
    command.add_out(parser, "texts to write: .jsonl with id, text (and segments)")
    command.add_batches(parser)
    command.add_on_empty(parser)
    command.add_machine(parser)
    parser.add_argument(
        "--generation", default="{}", metavar="JSON", help="fairseq generation options as JSON, e.g. '{\"beam\": 4}'"
    )


def main(args: argparse.Namespace) -> int:
    """Reads documents, generates and writes their texts."""
    check_folder(args.out)
    check_output(args.out, args.overwrite, [args.input, *args.path.split(os.pathsep)])
    workers = command.workers_of(args)
    files = ModelFiles(local_paths(args.path), args.data, args.device, args.precision, args.splitter)
    options = parse_generation_options(args.generation, "--generation")
    job = Texts(files, options, args.batch_size, args.max_tokens)
    pipeline = pipeline_of(files, workers)
    documents = list(read_records(args.input))
    if not documents:
        raise ValueError(f"{args.input} is empty: nothing to summarize")
    _, empty = command.find_empty(documents, pipeline, args.on_empty)
    write_texts(job, documents, empty, args.out, workers)
    return 0
