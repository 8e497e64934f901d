"""Predict a split with a fine-tuned encoder: labels, choices, or answers to questions.

Nothing appears under its name before it is complete; a run that is stopped leaves FILE.partial at most and starts anew.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..data.example import read_examples
from ..data.ids import read_ids
from ..tasks.row_dataset import RowDataset
from .predictor import Predictor
from .records import AnswerOptions, Record
from .rows import NEED_EXAMPLES, Reader, check_same, encode

BATCH_SIZE = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``hat predict``."""
    parser.add_argument("data", metavar="BIN", type=Path, help="bin directory of hat preprocess; before all flags")
    parser.add_argument("--path", required=True, help="checkpoint, or several with colons between them: an ensemble")
    parser.add_argument("--split", default="test", help="which one to predict (default: %(default)s)")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="predictions to write: .jsonl")
    parser.add_argument(
        "--examples",
        type=Path,
        metavar="FILE",
        help="examples that the split was made of; needed for segments, tokens and qa (default: "
        "BIN/../text/SPLIT.examples.jsonl)",
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


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Declare where and how precisely to compute."""
    parser.add_argument("--device", help="default: a GPU if there is one")
    for precision in ("fp16", "bf16"):
        parser.add_argument(
            f"--{precision}",
            dest="precision",
            action="store_const",
            const=precision,
            default="fp32",
            help="compute in this precision (GPU only)",
        )


def add_answers(parser: argparse.ArgumentParser) -> None:
    """Declare how answers to questions are chosen."""
    default = AnswerOptions()
    group = parser.add_argument_group("answers (qa)")
    group.add_argument("--n-best", type=int, default=default.n_best, help="answers to list (default: %(default)s)")
    group.add_argument(
        "--max-answer-length",
        type=int,
        default=default.max_length,
        metavar="N",
        help="in tokens (default: %(default)s)",
    )
    group.add_argument(
        "--no-answer-threshold",
        type=float,
        default=default.threshold,
        metavar="X",
        help="no answer where no_answer_score is greater (default: %(default)s; inf: always answer)",
    )


def answer_options(args: argparse.Namespace) -> AnswerOptions:
    return AnswerOptions(args.n_best, args.max_answer_length, args.no_answer_threshold)


def main(args: argparse.Namespace) -> int:
    """Predict, write, and say what was cut."""
    check_name(args.out)
    options = answer_options(args)
    args.out.parent.mkdir(parents=True, exist_ok=True)  # known to work now, not after hours
    overrides = {"long_source": args.long_source} if args.long_source else {}
    predictor = Predictor.load(args.path, args.data, args.device, args.precision, **overrides)
    task = predictor.task
    task.load_dataset(args.split)
    dataset = task.dataset(args.split)
    if not len(dataset):
        raise ValueError(f"the split {args.split} of {args.data} is empty: nothing to predict")
    reader = make_reader(args, predictor, options)
    batches = make_batches(dataset, args.batch_size, args.max_tokens)
    samples = (dataset.collater([dataset[index] for index in batch]) for batch in batches)
    outputs = {}
    with tqdm(total=len(dataset), unit="sample", disable=None) as bar:
        for index, output in predictor.outputs(samples):
            outputs[index] = reader.read(index, output)
            bar.update()
    records = list(reader.records(sorted(outputs.items())))
    if task.kind == "qa":
        write_official(args.out, records)
    written = write_lines(args.out, (record for record, _ in records))
    print(f"{args.out}: {len(written)} predictions")
    report(task.kind, len(dataset.removed), written)
    return 0


def make_batches(dataset: RowDataset, batch_size: int | None, max_tokens: int | None) -> list[list[int]]:
    """Samples of about one length together; the same ones each time.

    Raises:
        ValueError: `max_tokens` is lower than one sample needs.
    """
    longest = int(dataset.sizes.max())
    if max_tokens is not None and max_tokens < longest:
        raise ValueError(f"--max-tokens {max_tokens} is too low: one sample takes {longest} tokens")
    order = np.argsort(dataset.sizes, kind="stable")
    size = batch_size or (None if max_tokens else BATCH_SIZE)
    return dataset.batch_by_size(order, max_tokens=max_tokens, max_sentences=size, required_batch_size_multiple=1)


def make_reader(args: argparse.Namespace, predictor: Predictor, options: AnswerOptions) -> Reader:
    """What turns the outputs for the split into records.

    Raises:
        ValueError: the ids or the examples are missing, or are not those of the split.
    """
    task, ids = predictor.task, args.data / f"{args.split}.ids"
    if not ids.is_file():
        raise ValueError(f"{ids} is missing: BIN must be the bin directory of hat preprocess")
    chunks, dataset = read_ids(ids), task.dataset(args.split)
    if task.kind not in NEED_EXAMPLES:
        return Reader(task, chunks, dataset, options=options)
    path = args.examples or args.data.parent / "text" / f"{args.split}.examples.jsonl"
    if not path.is_file():
        raise ValueError(f"{path} is missing: predictions of {task.kind} are joined to the examples; give --examples")
    if task.pipeline is None:
        raise ValueError(f"{args.data} has no pipeline.json: make it with hat preprocess")
    examples = list(read_examples(path, task.kind))
    rows = encode(examples, task.pipeline)
    check_same(rows, chunks, path, ids)
    return Reader(task, chunks, dataset, examples, rows, options)


def check_name(out: Path) -> None:
    """Refuse a name that is not that of JSON lines; ``predictions.json`` would be SQuAD's own file.

    Raises:
        ValueError: it does not end in .jsonl.
    """
    if out.suffix != ".jsonl":
        raise ValueError(f"--out {out} must end in .jsonl")


def write_lines(out: Path, records: Iterable[Record]) -> list[Record]:
    """Write one JSON object a line, each at once, under the name FILE.partial until all are there; return them."""
    partial = out.with_name(f"{out.name}.partial")
    written = []
    with partial.open("w", encoding="utf-8", newline="\n") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
            lines.flush()
            written.append(record)
    os.replace(partial, out)
    return written


def write_official(out: Path, records: Iterable[tuple[Record, list[tuple[str, float]]]]) -> None:
    """Write SQuAD's own files beside ``out``: predictions.json, null_odds.json, nbest_predictions.json."""
    files: dict[str, dict[str, Any]] = {"predictions": {}, "null_odds": {}, "nbest_predictions": {}}
    for record, best in records:
        files["predictions"][record["id"]] = record["answer"]
        files["null_odds"][record["id"]] = record["no_answer_score"]
        files["nbest_predictions"][record["id"]] = [{"text": text, "score": score} for text, score in best]
    for name, content in files.items():
        path = out.with_name(f"{name}.json")
        partial = path.with_name(f"{path.name}.partial")
        partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(partial, path)


def report(kind: str, rows_cut: int, records: list[Record]) -> None:
    """Say on stderr what the predictions do not rest on."""
    for line in _notes(kind, rows_cut, records):
        print(line, file=sys.stderr)


def _notes(kind: str, rows_cut: int, records: list[Record]) -> Iterator[str]:
    if rows_cut:
        yield f"{rows_cut} rows were longer than the model and cut"
    lost = sum(record["labels"].count(None) for record in records if "labels" in record)
    if lost:
        yield f"{lost} {kind} were cut off and have no prediction: null among the labels"
