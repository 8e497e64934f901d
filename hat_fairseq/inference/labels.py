"""Predictions for records from fine-tuned encoders: labels, choices, and answers to questions.

Rows are made as in preprocessing. Rows of similar length are together in a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..analysis.recording import Recorder, segment_weights
from ..data.kinds import LabelledKind, Prediction
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.rows import EOS, Row
from .loading import Loaded
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


class Predictor:
    """An ensemble of fine-tuned encoders; ValueError for models that write texts."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.models, self.pipeline = loaded, loaded.models, loaded.pipeline
        self.kind: LabelledKind = labelled_kind(loaded.pipeline, loaded.paths[0])

    def predictions(
        self,
        records: Iterable[Record],
        batch_size: int | None = None,
        max_tokens: int | None = None,
        options: Any = None,
        details: bool = False,
    ) -> Iterator[Prediction]:
        """Yields the prediction of each record, in order.

        Up to `BLOCK` records are encoded before the first of them is predicted, so a bad one among them is a ValueError
        before that.

        Args:
            batch_size, max_tokens: see `batches`.
            options: of the class `kind.prediction_options`.
            details: add the segments of a record: the text of each with its label and the probability of the label, or
                with the `weight` and `share` that the model gives it (`segment_weights`).
        Raises:
            ValueError: weights of an ensemble; a record that is empty, too long, or has no text left.
        """
        check_batch_size(batch_size)
        if details and self.kind.has_segment_weights and len(self.models) > 1:
            raise ValueError("weights of segments are those of one model: give one checkpoint")
        records = iter(records)
        while block := list(islice(records, BLOCK)):
            rows, samples = self.encode(block)
            scores: dict[int, Any] = {}
            for batch in batches([sample.size for sample in samples], batch_size, max_tokens):
                scores |= zip(batch, self.scores([samples[index] for index in batch]), strict=True)
            of_record: list[list[Any]] = [[] for _ in block]
            for index, sample in enumerate(samples):
                of_record[sample.record].append(scores[index])
            for record, own, outputs in zip(block, rows, of_record, strict=True):
                prediction = self.kind.predict(record, own, outputs, self.loaded.labels, options)
                prediction.meta = record.meta
                if details and self.kind.has_segment_weights:
                    prediction.segments = self._weighted(own[self.kind.weighted_row(prediction)])
                elif details:
                    prediction.segments = self.kind.segments(record, own, outputs, prediction)
                yield prediction

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
    def scores(self, samples: Sequence[Sample]) -> list[Any]:
        """Computes the mean scores of the models for each sample: an array, or arrays by name; see `Kind.scores`."""
        device = self.loaded.device
        tokens = padded([row for sample in samples for row in sample.rows]).to(device)
        counts = torch.tensor([len(sample.rows) for sample in samples], device=device)
        names, scores = list(self.kind.heads(len(self.loaded.labels))), []
        for model in self.models:
            logits = self.kind.logits(model(tokens, classification_head_name=names)[0], tokens, counts)
            named = logits if isinstance(logits, dict) else {"": logits}
            scores.append({name: self.kind.scores(each.float()) for name, each in named.items()})
        means = {name: torch.stack([each[name] for each in scores]).mean(dim=0).cpu().numpy() for name in scores[0]}
        each_sample = [{name: mean[index] for name, mean in means.items()} for index in range(len(samples))]
        return [each.get("", each) for each in each_sample]

    def _weighted(self, row: Row) -> list[dict[str, Any]]:
        """The text of each segment of a row with its weight and its share; the whole text if the model has neither."""
        tokens = row_of(row.tokens, self.loaded.source).to(self.loaded.device)
        recorder, weights = segment_weights(self.models[0], tokens[None])
        if not weights:
            return [{"text": text_of(row.tokens, self.pipeline)}]
        texts = unit_texts(recorder, [*row.tokens, EOS], self.pipeline)
        return [{"text": text, **each} for text, each in zip(texts, weights, strict=True)]


def labelled_kind(pipeline: TextPipeline, path: str) -> LabelledKind:
    """Returns the kind of data; ValueError for that of models that write texts."""
    if not isinstance(pipeline.kind, LabelledKind):
        raise ValueError(f"{path} was trained on the task {pipeline.kind.task}: it predicts no labels")
    return pipeline.kind


def unit_texts(recorder: Recorder, words: Sequence[str], pipeline: TextPipeline) -> tuple[str, ...]:
    """The text of each unit of a document, from its words."""
    return tuple(text_of(unit, pipeline) for unit in recorder.by_unit(words))


def text_of(words: Sequence[str], pipeline: TextPipeline) -> str:
    """The text of some tokens; symbols that are no text stay as they are."""
    text = " ".join(words)
    return pipeline.decode(text, side="source") if pipeline.kind.is_text else text
