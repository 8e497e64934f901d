"""Predict a split with a fine-tuned encoder: labels, choices, or answers to questions.

A file appears under its name when it is complete. A run that was stopped leaves FILE.partial at most, and the same
command starts anew.
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.manifest import check_files
from ..data.outputs import check_output
from ..data.parallel import progress
from ..data.record import Text
from ..data.records_json import read_records, with_meta
from ..scoring.official import FILES, dataset_of, without_offsets, write_official_answers
from ..tasks.bin_folder import load_ids
from ..tasks.encoder_task import EncoderTask, check_max_tokens
from ..tasks.row_dataset import RowDataset
from . import command
from .assemble import ASSEMBLERS, Assembler, Best, Prediction, Spans
from .loading import Predictor, load_models

BATCH_SIZE = 8
OFFICIAL = ("predictions", "null_odds", "nbest_predictions")  # SQuAD's own files, written beside --out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="BIN", type=Path, help="bin directory of hat preprocess; before all flags")
    parser.add_argument("--path", required=True, help="checkpoint, or several with colons between them: an ensemble")
    parser.add_argument("--split", default="test", help="split to predict (default: %(default)s)")
    command.add_out(parser, "predictions to write: .jsonl")
    text = "questions of the split with their texts (qa, document_qa) (default: BIN/../text/SPLIT.jsonl)"
    parser.add_argument("--examples", type=Path, metavar="FILE", help=text)
    text = f"samples in a batch (default: {BATCH_SIZE} without --max-tokens)"
    parser.add_argument("--batch-size", type=int, metavar="N", help=text)
    parser.add_argument("--max-tokens", type=int, metavar="N", help="tokens in a batch, padding included")
    text = "rows longer than the model (default: as trained)"
    parser.add_argument("--long-source", choices=("error", "truncate"), help=text)
    command.add_machine(parser)
    command.add_answers(parser)


def main(args: argparse.Namespace) -> int:
    """Predicts a split and writes its records; warns about truncation."""
    command.check_name(args.out)
    inputs = [args.examples, *args.path.split(os.pathsep)]
    check_output(args.out, args.overwrite, inputs)
    command.check_batch_size(args.batch_size)
    check_files(args.data, args.split, contents=True)
    command.answer_options(args)  # a mistake is known before the model is loaded
    args.out.parent.mkdir(parents=True, exist_ok=True)  # before the work: this may fail
    overrides = {"long_source": args.long_source} if args.long_source else {}
    predictor = Predictor(*load_models(args.path, args.data, EncoderTask, args.device, args.precision, **overrides))
    task = predictor.task
    dataset_name = None
    if task.kind == "document_qa" and records_of(args).is_file():
        first = next(read_records(records_of(args), task.kind), None)
        dataset_name = dataset_of(first) if first else None
    official = [f"{name}.json" for name in OFFICIAL] if task.kind == "qa" else []
    for name in [FILES[dataset_name]] if dataset_name else official:
        check_output(args.out.with_name(name), args.overwrite, inputs)
    task.load_dataset(args.split)
    dataset = task.dataset(args.split)
    if not len(dataset):
        raise ValueError(f"the split {args.split} of {args.data} is empty: nothing to predict")
    assembler = make_assembler(args, task, dataset)
    parts: dict[int, Any] = {}
    samples = batches(dataset, args.batch_size, args.max_tokens)
    outputs = (pair for sample in samples for pair in zip(sample["id"].tolist(), predictor(sample), strict=True))
    for index, output in progress(outputs, "predict", len(dataset), "samples"):
        parts[index] = assembler.part(index, output)
    predictions = list(assembler.predictions(sorted(parts.items())))
    if task.kind == "qa":
        write_official(args.out, predictions)
    rows = with_meta([prediction for prediction, _ in predictions], records_of(args), task.kind)
    if dataset_name:
        by_id = {row["id"]: row for row in rows}
        records = (record for record in read_records(records_of(args), task.kind) if record.id in by_id)
        path = write_official_answers(args.out.parent, dataset_name, ((each, by_id[each.id]) for each in records))
        print(f"{path}: for the official scorer of {dataset_name}")
        rows = list(map(without_offsets, rows))
    written = command.write_lines(args.out, rows)
    command.report(args.out, task.kind, len(dataset.removed), written)
    return 0


def batches(dataset: RowDataset, batch_size: int | None, max_tokens: int | None) -> Iterator[dict[str, Any]]:
    """Yields batches, samples of similar length together; deterministic. ValueError if `max_tokens` is too low.

    A batch has at most as much padding as tokens: one long sample does not lengthen the short ones of its batch.
    """
    check_max_tokens(dataset, max_tokens)
    order = np.argsort(dataset.sizes, kind="stable")
    size = batch_size or (None if max_tokens else BATCH_SIZE)
    for batch in dataset.batch_by_size(order, max_tokens, size):
        for part in similar(batch, dataset.sizes):
            yield dataset.collater([dataset[index] for index in part])


def similar(batch: Sequence[int], sizes: np.ndarray) -> Iterator[Sequence[int]]:
    """Divides a batch, sorted by size, into parts of which at least half is not padding."""
    first, tokens = 0, 0
    for place, index in enumerate(batch):
        if 2 * (tokens + sizes[index]) < (place - first + 1) * sizes[index]:
            yield batch[first:place]
            first, tokens = place, 0
        tokens += sizes[index]
    yield batch[first:]


def make_assembler(args: argparse.Namespace, task: EncoderTask, dataset: RowDataset) -> Assembler:
    """The assembler of the split's predictions; ValueError if its ids, spans or examples are missing, or of another."""
    form, num_rows = ASSEMBLERS[task.kind], len(dataset.dataset)
    chunks = load_ids(args.data / f"{args.split}.ids", num_rows, "BIN must be the bin directory of hat preprocess")
    spans = Spans.load(args.data / f"{args.split}.spans", num_rows) if form.needs_spans else None
    contexts: dict[str, Text] = {}
    if form.needs_contexts:
        path = records_of(args)
        if not path.is_file():
            raise ValueError(f"{path} is missing: answers to questions are cut out of their texts; give --examples")
        contexts = {example.id: example.parts[-1] for example in read_records(path, task.kind)}
    elif args.examples is not None:
        raise ValueError(f"--examples has no effect with data of the kind {task.kind}; remove it")
    return form(task, dataset, chunks, spans, contexts, command.answer_options(args))


def records_of(args: argparse.Namespace) -> Path:
    """The records of the split as `hat preprocess` stored them, or as given."""
    return args.examples or args.data.resolve().parent / "text" / f"{args.split}.jsonl"


def write_official(out: Path, records: Iterable[tuple[Prediction, Best]]) -> None:
    """Writes SQuAD's own files beside `out`: predictions.json, null_odds.json, nbest_predictions.json."""
    files: dict[str, dict[str, object]] = {name: {} for name in OFFICIAL}
    for record, best in records:
        files["predictions"][record["id"]] = record["answer"]
        files["null_odds"][record["id"]] = record["no_answer_score"]
        files["nbest_predictions"][record["id"]] = [{"text": text, "score": score} for text, score in best]
    for name, content in files.items():
        command.write_lines(out.with_name(f"{name}.json"), [content], indent=1)
