"""Predictions for records from fine-tuned encoders: labels, choices, and answers to questions.

Rows are made as in preprocessing. Rows of similar length are together in a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..analysis.recording import BatchRecorder, segment_attentions
from ..data.kinds import LabelledKind, Prediction
from ..data.record import Record
from ..data.rows import Row
from .loading import Loaded
from .look_units import unit_texts
from .rows import batches, check_batch_size, check_length, count_unknown, padded, row_of

BLOCK = 512  # records that are encoded, and sorted by length, at a time


class Sample(NamedTuple):
    """A row, or all rows of a record."""

    record: int  # its number in the block
    rows: list[Tensor]  # (T,) token ids

    @property
    def size(self) -> int:
        """Tokens of all rows, padded to the longest one."""
        return len(self.rows) * max(map(len, self.rows))


class Output(NamedTuple):
    """What models say of a sample."""

    scores: Any  # `LabelledKind.scores`: an array, or arrays by name
    weights: list[dict[str, Any]]  # of each row: `numbers` of the unit of each token; `weight`, `share` of each unit


class Predictor:
    """An ensemble of fine-tuned encoders; ValueError for models that write texts."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.models, self.pipeline = loaded, loaded.models, loaded.pipeline
        if not isinstance(loaded.pipeline.kind, LabelledKind):
            raise ValueError(
                f"{loaded.paths[0]} was trained on the task {loaded.pipeline.kind.task}: it predicts no labels"
            )
        self.kind: LabelledKind = loaded.pipeline.kind

    def predictions(
        self,
        records: Iterable[Record],
        batch_size: int | None = None,
        max_tokens: int | None = None,
        options: Any = None,
        details: bool = False,
        layer: int | None = None,
    ) -> Iterator[Prediction]:
        """Yields the prediction of each record, in order.

        Up to `BLOCK` records are encoded before the first of them is predicted, so a bad one among them is a ValueError
        before that.

        Args:
            batch_size, max_tokens: see `batches`.
            options: of the class `kind.prediction_options`.
            details: add the segments of a record: the text of each with its label and the probability of the label, or
                with the `weight` and `share` that the model gives it (`BatchRecorder`).
            layer: whose attention the weights are from; None: the mean of all layers.
        Raises:
            ValueError: weights of an ensemble; a layer that does not attend between segments; a record that is empty,
                too long, or has no text left.
        """
        check_batch_size(batch_size)
        shown = None
        if details and self.kind.has_segment_weights:
            if len(self.models) > 1:
                raise ValueError("weights of segments are those of one model: give one checkpoint")
            shown = segment_attentions(self.models[0].core, layer)
        records = iter(records)
        while block := list(islice(records, BLOCK)):
            rows, samples = self.encode(block)
            outputs: dict[int, Output] = {}
            for batch in batches([sample.size for sample in samples], batch_size, max_tokens):
                outputs |= zip(batch, self.outputs([samples[index] for index in batch], shown), strict=True)
            of_record: list[list[Output]] = [[] for _ in block]
            for index, sample in enumerate(samples):
                of_record[sample.record].append(outputs[index])
            for record, own, said in zip(block, rows, of_record, strict=True):
                yield self._prediction(record, own, said, options, details)

    def encode(self, records: Sequence[Record]) -> tuple[list[list[Row]], list[Sample]]:
        """Encodes records: the rows of each, and the samples of all."""
        rows = [self.pipeline.encode(record) for record in records]
        samples = []
        for number, own in enumerate(rows):
            ids = [row_of(row.tokens, self.loaded.source) for row in own]
            for tokens in ids:
                check_length(records[number], tokens, self.loaded)
            samples += [Sample(number, ids)] if self.kind.joins_rows else [Sample(number, [tokens]) for tokens in ids]
        count_unknown(self.pipeline, [tokens for sample in samples for tokens in sample.rows])
        return rows, samples

    @torch.no_grad()
    def outputs(self, samples: Sequence[Sample], shown: Any = None) -> list[Output]:
        """Computes the mean scores of the models for samples, in fp32 on the CPU; `shown`: the attentions to record."""
        rows = [row for sample in samples for row in sample.rows]
        device = self.loaded.device
        tokens, counts = padded(rows).to(device), torch.tensor([len(sample.rows) for sample in samples], device=device)
        names, scores = list(self.kind.heads(len(self.loaded.labels))), []
        recorder = None if shown is None else BatchRecorder(self.models[0], tokens, shown)
        with recorder or nullcontext():
            for model in self.models:
                logits = self.kind.logits(model(tokens, classification_head_name=names)[0], tokens, counts)
                named = logits if isinstance(logits, dict) else {"": logits}
                scores.append({name: self.kind.scores(each.float()) for name, each in named.items()})
        means = {name: torch.stack([each[name] for each in scores]).mean(dim=0).cpu().numpy() for name in scores[0]}
        weights = [] if recorder is None else _weights(recorder, [len(row) - 1 for row in rows])
        said, first = [], 0
        for index, sample in enumerate(samples):
            one = {name: each[index] for name, each in means.items()}
            said.append(Output(one.get("", one), weights[first : first + len(sample.rows)]))
            first += len(sample.rows)
        return said

    def _prediction(
        self, record: Record, rows: list[Row], outputs: list[Output], options: Any, details: bool
    ) -> Prediction:
        scores = [output.scores for output in outputs]
        prediction = self.kind.predict(record, rows, scores, self.loaded.labels, options)
        prediction.meta = record.meta
        if details:
            prediction.segments = self.kind.segments(record, rows, scores, prediction)
            if self.kind.has_segment_weights:
                row = self.kind.weighted_row(prediction)
                prediction.segments = self._weighted(rows[row], outputs[0].weights[row])
        return prediction

    def _weighted(self, row: Row, weights: dict[str, Any]) -> list[dict[str, Any]]:
        """The text of each segment of a row with its weight and its share, as far as the model has them."""
        texts = unit_texts(row.tokens, weights["numbers"], self.pipeline)
        named = {name: values for name, values in weights.items() if name != "numbers"}
        return [
            {"text": text, **{name: values[number] for name, values in named.items()}}
            for number, text in enumerate(texts)
        ]


def _weights(recorder: BatchRecorder, lengths: list[int]) -> list[dict[str, Any]]:
    """`Output.weights`; `lengths`: the tokens of each row without `</s>`, which is no text."""
    figures = {"weight": recorder.attention, "share": recorder.share}
    lists = {name: values.tolist() for name, values in figures.items() if values is not None}
    return [
        {"numbers": recorder.rows[row, :length].cpu()} | {name: values[row] for name, values in lists.items()}
        for row, length in enumerate(lengths)
    ]
