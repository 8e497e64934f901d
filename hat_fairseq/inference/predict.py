"""Predict a split with a fine-tuned encoder: labels, choices, or answers to questions.

A file appears under its name when it is complete. A run that was stopped leaves FILE.partial at most, and the same
command starts anew.
"""

import argparse
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..data.example import read_examples
from ..data.files import check_output
from ..tasks.bin_folder import load_ids
from ..tasks.encoder_task import EncoderTask, check_max_tokens
from ..tasks.row_dataset import RowDataset
from .assemble import NEED_EXAMPLES, Assembler, Record, chunks_of, encode
from .command import (
    add_answers,
    add_machine,
    add_out,
    answer_options,
    check_batch_size,
    check_name,
    report,
    write_lines,
)
from .loading import Predictor, pipeline_of

BATCH_SIZE = 8
OFFICIAL = ("predictions", "null_odds", "nbest_predictions")  # SQuAD's own files, written beside --out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `hat predict`."""
    parser.add_argument("data", metavar="BIN", type=Path, help="bin directory of hat preprocess; before all flags")
    parser.add_argument("--path", required=True, help="checkpoint, or several with colons between them: an ensemble")
    parser.add_argument("--split", default="test", help="split to predict (default: %(default)s)")
    add_out(parser, "predictions to write: .jsonl")
    parser.add_argument(
        "--examples",
        type=Path,
        metavar="FILE",
        help="examples of the split; needed for segments, tokens and qa (default: BIN/../text/SPLIT.examples.jsonl)",
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help=f"samples in a batch (default: {BATCH_SIZE} without --max-tokens)"
    )
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens in a batch, padding included")
    parser.add_argument(
        "--long-source", choices=("error", "truncate"), help="rows longer than the model (default: as trained)"
    )
    add_machine(parser)
    add_answers(parser)


def main(args: argparse.Namespace) -> int:
    """Predicts a split and writes its records; warns about truncation."""
    check_name(args.out)
    inputs = [args.examples, *args.path.split(os.pathsep)]
    check_output(args.out, args.overwrite, inputs)
    check_batch_size(args.batch_size)
    answer_options(args)  # a mistake is known before the model is loaded
    args.out.parent.mkdir(parents=True, exist_ok=True)  # before the work: this may fail
    overrides = {"long_source": args.long_source} if args.long_source else {}
    predictor = Predictor.load(args.path, args.data, args.device, args.precision, **overrides)
    task = predictor.task
    for name in OFFICIAL if task.kind == "qa" else ():
        check_output(args.out.with_name(f"{name}.json"), args.overwrite, inputs)
    task.load_dataset(args.split)
    dataset = task.dataset(args.split)
    if not len(dataset):
        raise ValueError(f"the split {args.split} of {args.data} is empty: nothing to predict")
    assembler = make_assembler(args, task, dataset)
    parts: dict[int, Any] = {}
    with tqdm(total=len(dataset), unit="sample", disable=None) as bar:
        for sample in batches(dataset, args.batch_size, args.max_tokens):
            for index, output in zip(sample["id"].tolist(), predictor(sample), strict=True):
                parts[index] = assembler.part(index, output)
                bar.update()
    records = list(assembler.records(sorted(parts.items())))
    if task.kind == "qa":
        write_official(args.out, records)
    written = write_lines(args.out, (record for record, _ in records))
    report(args.out, task.kind, len(dataset.removed), written)
    return 0


def batches(dataset: RowDataset, batch_size: int | None, max_tokens: int | None) -> Iterator[dict[str, Any]]:
    """Yields batches, samples of similar length together; deterministic.

    Raises:
        ValueError: `max_tokens` is lower than one sample needs.
    """
    check_max_tokens(dataset, max_tokens)
    order = np.argsort(dataset.sizes, kind="stable")
    size = batch_size or (None if max_tokens else BATCH_SIZE)
    for batch in dataset.batch_by_size(order, max_tokens, size):
        yield dataset.collater([dataset[index] for index in batch])


def make_assembler(args: argparse.Namespace, task: EncoderTask, dataset: RowDataset) -> Assembler:
    """Returns the assembler of the split's records.

    Raises:
        ValueError: the ids or the examples are missing, or are not those of the split.
    """
    ids, options = args.data / f"{args.split}.ids", answer_options(args)
    chunks = load_ids(ids, len(dataset.dataset), "BIN must be the bin directory of hat preprocess")
    if task.kind not in NEED_EXAMPLES:
        return Assembler(task, dataset, chunks, options=options)
    path = args.examples or args.data.parent / "text" / f"{args.split}.examples.jsonl"
    if not path.is_file():
        raise ValueError(f"{path} is missing: predictions of {task.kind} are joined to the examples; give --examples")
    examples = list(read_examples(path, task.kind))
    rows = encode(examples, pipeline_of(task))
    for expected, actual in itertools.zip_longest(chunks_of(rows), chunks):
        if expected != actual:
            name = (actual or expected).document_id
            raise ValueError(f"{path} does not belong to {ids}: they differ from {name!r} on; run hat preprocess again")
    return Assembler(task, dataset, chunks, examples, rows, options)


def write_official(out: Path, records: Iterable[tuple[Record, list[tuple[str, float]]]]) -> None:
    """Writes SQuAD's own files beside `out`: predictions.json, null_odds.json, nbest_predictions.json."""
    files: dict[str, dict[str, object]] = {name: {} for name in OFFICIAL}
    for record, best in records:
        files["predictions"][record["id"]] = record["answer"]
        files["null_odds"][record["id"]] = record["no_answer_score"]
        files["nbest_predictions"][record["id"]] = [{"text": text, "score": score} for text, score in best]
    for name, content in files.items():
        write_lines(out.with_name(f"{name}.json"), [content], indent=1)
