"""Classify raw documents with a fine-tuned encoder, and say which segments mattered."""

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
from .command import add_answers, add_machine, answer_options, check_name, report, write_lines
from .predictor import Predictor
from .records import AnswerOptions, Record, elements
from .rows import Reader, chunks_of, dataset_of, encode

logger = logging.getLogger(__name__)

WITH_WEIGHTS = ("classification", "choice")  # one prediction from all segments: some matter more than others


class DocumentClassifier:
    """A fine-tuned model with its task: examples in, predictions out, by the path that made the training data.

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
        """Load a checkpoint; `data` is the bin directory that it was fine-tuned on. See `Predictor.load`."""
        return cls(Predictor.load(checkpoint, data, device, precision), layer, options)

    def rows(self, examples: Iterable[Example], batch_size: int = 1) -> Iterator[Record]:
        """Yield the prediction of each example, in order and as soon as it is there.

        As `hat predict` writes it (see `records.py`), and for `classification`, `choice` (of the chosen one) and
        `segments` with `"segments"`: the text of each, and its `weight` and `share` (see `analysis/segment_weights.py`)
        or its label and the label's probability. All examples are encoded first, so a bad one is an error before
        anything is predicted. What was changed or cut on the way in is logged.
        """
        examples = list(examples)
        if not examples:
            return
        before = Counter(self.pipeline.counts)
        rows = encode(examples, self.pipeline)
        dataset = dataset_of(self.task, rows, "the input")
        self.rows_cut = len(dataset.removed)
        self._report(self.pipeline.counts - before, rows)
        reader = Reader(self.task, chunks_of(rows), dataset, examples, rows, self.options)

        def outputs() -> Iterator[tuple[int, Any]]:
            for start in range(0, len(dataset), batch_size):
                batch = range(start, min(start + batch_size, len(dataset)))
                yield from self._outputs(dataset.collater([dataset[index] for index in batch]), reader)

        for record, best in reader.records(outputs()):
            yield record | ({"n_best": [{"text": text, "score": score} for text, score in best]} if best else {})

    def _outputs(self, sample: dict[str, Any], reader: Reader) -> Iterator[tuple[int, Any]]:
        """What the reader makes of each sample of a batch, with its segments."""
        if self.weights is None:
            outputs = self.predictor(sample)
        else:
            with self.weights:
                outputs = self.predictor(sample)
        counts = sample["choices"].tolist() if self.task.kind == "choice" else [1] * sample["nsentences"]
        first = 0  # row of the batch where the sample begins
        for index, output, count in zip(sample["id"].tolist(), outputs, counts, strict=True):
            read = reader.read(index, output)
            if self.task.kind == "segments":
                read["segments"] = self._labelled(reader, index, read, output)
            elif self.weights is not None:
                chosen = int(read["label"]) if self.task.kind == "choice" else 0
                tokens = sample["net_input"]["src_tokens"][first + chosen]
                read["segments"] = self._weighted(reader.rows_of(index)[chosen], tokens, first + chosen)
            yield index, read
            first += count

    def _weighted(self, row: EncodedRow, tokens: Tensor, place: int) -> list[Record]:
        """The text, weight and share of each segment of a row; `tokens` and `place`: of the same row in the batch."""
        assert self.weights is not None
        numbers = self.model.span_numbers(tokens[None].to(self.predictor.device))[0].tolist()
        texts: dict[int, list[str]] = {}
        for token, number in zip(row.tokens, numbers, strict=False):  # then comes the final `</s>`, which is no text
            texts.setdefault(number, []).append(token)
        segments: list[Record] = [{"text": self._text(piece)} for _, piece in sorted(texts.items())]
        for name, values in (("weight", self.weights.attention), ("share", self.weights.share)):
            if values is not None:
                for segment, value in zip(segments, values[place].tolist(), strict=False):
                    segment[name] = value
        return segments

    def _labelled(self, reader: Reader, index: int, read: Record, output: Tensor) -> list[Record]:
        """The text of each segment as given, its label and the label's probability."""
        row, best = reader.rows[index], output.max(dim=-1).values.tolist()
        probabilities = {number: best[place] for place, number in elements(row, "segments")}
        texts = reader.examples[row.id].inputs[0][0]
        return [
            {"text": text, "label": label, "probability": probabilities.get(number)}
            for number, (text, label) in enumerate(zip(texts, read["labels"], strict=True))
        ]

    def _text(self, tokens: list[str]) -> str:
        return self.pipeline.decode(" ".join(tokens), side="source")

    def _report(self, changed: Counter[str], rows: Iterable[EncodedRow]) -> None:
        dictionary = self.task.source_dictionary
        unknown = sum(dictionary.index(token) == dictionary.unk() for row in rows for token in row.tokens)
        changed = Counter({name: n for name, n in changed.items() if name != "source_tokens"})  # that is all of them
        changed["source_tokens_unknown_to_dictionary"] = unknown
        if +changed:
            logger.warning("changed on the way in: %s", ", ".join(f"{k} {n}" for k, n in sorted((+changed).items())))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``hat classify``."""
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
    """Classify, write, and say what was cut."""
    check_name(args.out)
    if not args.out.parent.is_dir():  # known now, not after hours
        raise ValueError(f"{args.out.parent}: the directory of --out does not exist")
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
