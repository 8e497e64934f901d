"""Classify raw documents with a fine-tuned encoder, with a weight for each segment."""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import Tensor
from tqdm import tqdm

from ..analysis.segment_weights import SegmentWeights
from ..data.encoded import EncodedRow
from ..data.example import Example, read_examples
from .assemble import Assembler, chunks_of, dataset_of, encode
from .command import (
    add_answers,
    add_machine,
    answer_options,
    batches_of,
    check_batch_size,
    check_folder,
    check_name,
    report,
    write_lines,
)
from .predictor import Predictor
from .records import AnswerOptions, Record, elements

logger = logging.getLogger(__name__)

#: Kinds with one prediction from all segments: these segments have weights.
WITH_WEIGHTS = ("classification", "choice")


class DocumentClassifier:
    """A fine-tuned model with its task: examples in, predictions out, encoded as the training data were.

    Args:
        predictor: with one model.
        layer: the layer whose attention gives the weights of segments; None for the mean of all.
        options: of answers.

    Raises:
        ValueError: several models, data without pipeline.json, or a layer that does not attend between segments.
    """

    def __init__(self, predictor: Predictor, layer: int | None = None, options: AnswerOptions | None = None) -> None:
        if len(predictor.models) > 1:
            raise ValueError("weights of segments are those of one model: give one checkpoint")
        if predictor.task.pipeline is None:
            raise ValueError(f"{predictor.task.cfg.data} has no pipeline.json: make it with hat preprocess")
        self.predictor, self.task, self.pipeline = predictor, predictor.task, predictor.task.pipeline
        self.model, self.options = predictor.models[0], options
        self.weights = SegmentWeights(self.model, layer) if self.task.kind in WITH_WEIGHTS else None
        self.rows_cut = 0

    @classmethod
    def from_pretrained(
        cls,
        checkpoint: str,
        data: str | Path,
        device: str | None = None,
        precision: str = "fp32",
        layer: int | None = None,
        options: AnswerOptions | None = None,
    ) -> DocumentClassifier:
        """Loads a checkpoint; see `loading.load_models`, also for errors, and the class for `layer` and `options`."""
        return cls(Predictor.load(checkpoint, data, device, precision), layer, options)

    def rows(self, examples: Iterable[Example], batch_size: int = 1) -> Iterator[Record]:
        """Yields the prediction of each example, in order and as soon as it is computed.

        The record is that of `hat predict` (see `records.py`). `classification`, `choice` (the chosen one) and
        `segments` add `"segments"`: the text of each, and its `weight` and `share` (see `analysis/segment_weights.py`)
        or its label and the probability of the label. All examples are encoded first, so a bad one is an error before
        anything is predicted. Changes and truncation of the input are logged.

        Raises:
            ValueError: an example that cannot be encoded, or a batch size below 1.
        """
        check_batch_size(batch_size)
        examples = list(examples)
        if not examples:
            return
        before = Counter(self.pipeline.counts)
        rows = encode(examples, self.pipeline)
        dataset = dataset_of(self.task, rows, "the input")
        self.rows_cut = len(dataset.removed)
        self._report(self.pipeline.counts - before, rows)
        assembler = Assembler(self.task, chunks_of(rows), dataset, examples, rows, self.options)

        def parts() -> Iterator[tuple[int, Any]]:
            for batch in batches_of(len(dataset), batch_size):
                yield from self._parts(dataset.collater([dataset[index] for index in batch]), assembler)

        for record, best in assembler.records(parts()):
            yield record | ({"n_best": [{"text": text, "score": score} for text, score in best]} if best else {})

    def _parts(self, sample: dict[str, Any], assembler: Assembler) -> Iterator[tuple[int, Any]]:
        """Yields the index and the part of each sample of a batch, with its segments."""
        if self.weights is None:
            outputs = self.predictor(sample)
        else:
            with self.weights:
                outputs = self.predictor(sample)
        counts = sample["choices"].tolist() if self.task.kind == "choice" else [1] * sample["nsentences"]
        first = 0  # row of the batch where the sample begins
        for index, output, count in zip(sample["id"].tolist(), outputs, counts, strict=True):
            part = assembler.part(index, output)
            if self.task.kind == "segments":
                part["segments"] = self._labelled(assembler, index, part, output)
            elif self.weights is not None:
                chosen = int(part["label"]) if self.task.kind == "choice" else 0
                tokens = sample["net_input"]["src_tokens"][first + chosen]
                part["segments"] = self._weighted(assembler.rows_of(index)[chosen], tokens, first + chosen)
            yield index, part
            first += count

    def _weighted(self, row: EncodedRow, tokens: Tensor, place: int) -> list[Record]:
        """Returns the text, weight and share of each segment of a row; `tokens`, `place`: of the row in the batch."""
        assert self.weights is not None
        numbers = self.model.span_numbers(tokens[None].to(self.predictor.device))[0].tolist()
        texts: dict[int, list[str]] = {}
        for token, number in zip(row.tokens, numbers, strict=False):  # without the final `</s>`, which is no text
            texts.setdefault(number, []).append(token)
        segments: list[Record] = [{"text": self._text(piece)} for _, piece in sorted(texts.items())]
        for name, values in (("weight", self.weights.attention), ("share", self.weights.share)):
            if values is not None:
                for segment, value in zip(segments, values[place].tolist(), strict=False):
                    segment[name] = value
        return segments

    def _labelled(self, assembler: Assembler, index: int, record: Record, output: Tensor) -> list[Record]:
        """Returns the text of each segment as given, its label and the probability of the label."""
        row, best = assembler.rows[index], output.max(dim=-1).values.tolist()
        probabilities = {number: best[place] for place, number in elements(row, "segments")}
        texts = assembler.examples[row.id].inputs[0][0]
        return [
            {"text": text, "label": label, "probability": probabilities.get(number)}
            for number, (text, label) in enumerate(zip(texts, record["labels"], strict=True))
        ]

    def _text(self, tokens: list[str]) -> str:
        return self.pipeline.decode(" ".join(tokens), side="source")

    def _report(self, changed: Counter[str], rows: Iterable[EncodedRow]) -> None:
        dictionary = self.task.source_dictionary
        unknown = sum(dictionary.index(token) == dictionary.unk() for row in rows for token in row.tokens)
        changed = Counter({name: n for name, n in changed.items() if name != "source_tokens"})  # their total number
        changed["source_tokens_unknown_to_dictionary"] = unknown
        if +changed:
            logger.warning(
                "input changed by preprocessing: %s", ", ".join(f"{k} {n}" for k, n in sorted((+changed).items()))
            )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `hat classify`."""
    parser.add_argument("--path", required=True, help="a fine-tuned checkpoint")
    parser.add_argument("--data", required=True, type=Path, metavar="BIN", help="bin directory that it was trained on")
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="examples as for hat preprocess, labels not needed: .jsonl or .jsonl.gz",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="predictions to write: .jsonl")
    parser.add_argument("--batch-size", type=int, default=1, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--layer", type=int, metavar="N", help="weights of segments from this layer only, from 0 (default: mean of all)"
    )
    add_machine(parser)
    add_answers(parser)


def main(args: argparse.Namespace) -> int:
    """Classifies examples and writes their records; warns about truncation."""
    check_name(args.out)
    check_folder(args.out)
    check_batch_size(args.batch_size)
    options = answer_options(args)
    model = DocumentClassifier.from_pretrained(
        args.path, args.data, args.device, args.precision, layer=args.layer, options=options
    )
    examples = list(read_examples(args.input, model.task.kind))
    if not examples:
        raise ValueError(f"{args.input} is empty: nothing to classify")
    rows = tqdm(model.rows(examples, args.batch_size), total=len(examples), unit="example", disable=None)
    records = write_lines(args.out, rows)
    print(f"{args.out}: {len(records)} predictions")
    report(model.task.kind, model.rows_cut, records)
    return 0
