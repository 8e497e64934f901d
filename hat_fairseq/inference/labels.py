"""Predictions for records from fine-tuned encoders: labels, choices, and answers to questions.

Rows are made as in preprocessing. Rows of similar length are together in a batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..analysis.recording import Recorder, segment_weights
from ..data.dictionary import BOS
from ..data.kinds import ChoiceKind, Kind, LabelledKind, Prediction
from ..data.pipeline import TextPipeline
from ..data.places import PlacedPipeline, places_of_row, text_at
from ..data.record import Record
from ..data.rows import Row
from ..data.text import EOS_TOKEN
from ..model_folder import ModelFolder, is_model_folder
from ..modules.batch_layout import safe_padding_mask
from ..options import OptionError
from .loaded import Loaded
from .loading import verb_of
from .rows import Encoded, batches, check_batches, encode_documents, padded

BLOCK = 512  # records that are encoded, and sorted by length, at a time


class Predictor:
    """An ensemble of fine-tuned encoders; ValueError for models that write texts, or have other numbers than labels."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded, self.models, self.pipeline = loaded, loaded.models, loaded.pipeline
        self.kind: LabelledKind = labelled_kind(loaded.pipeline, loaded.paths[0])
        self._unit_weights: dict[int, list[float]] = {}
        for path in filter(is_model_folder, loaded.paths):
            ModelFolder.open(path).check_has_classes(self.kind.names_labels)

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
            details: add the segments of a record: the text of each as it was given, with its label and the probability
                of the label, or with the `weight` and `share` that the model gives it (`segment_weights`).
        Raises:
            ValueError: weights of an ensemble; a record that is empty, too long, or has no text left, or whose scores
                are NaN.
        """
        check_batches(batch_size)
        check_details(self.kind, details)
        if details and self.kind.details == "weights" and len(self.models) > 1:
            raise ValueError("weights of segments are those of one model: give one checkpoint")
        records = iter(records)
        while block := list(islice(records, BLOCK)):
            encoded = encode_documents(block, self.placed if details else self.loaded)
            yield from self.predictions_of(block, encoded, batch_size, max_tokens, options, details)

    def keep_vectors(self, path: str) -> None:
        """Takes vectors of units from a file; `save_vectors` adds new ones. ValueError for models without such."""
        encoder: Any = getattr(self.models[0], "core", None)
        if len(self.models) > 1 or not getattr(encoder, "of_units", False):
            what = "an ensemble" if len(self.models) > 1 else self.loaded.architecture
            raise ValueError(f"--vectors is for one model of hat_units, and this is {what}: remove it")
        encoder.keep_vectors(path)

    def save_vectors(self) -> None:
        """Writes new vectors of units to the file of `keep_vectors`."""
        self.models[0].core.save_vectors()

    @property
    def placed(self) -> Loaded:
        """Returns the same where the tokens of rows know their places in the texts, if segments of these are shown."""
        if not shows_given_texts(self.kind):
            return self.loaded
        own = self.pipeline
        return replace(self.loaded, pipeline=PlacedPipeline(own.settings, own.bpe, own.counts, own.needed, places=True))

    def predictions_of(
        self,
        records: Sequence[Record],
        encoded: Sequence[list[Encoded]],
        batch_size: int | None = None,
        max_tokens: int | None = None,
        options: Any = None,
        details: bool = False,
    ) -> Iterator[Prediction]:
        """Yields the prediction of each record, whose rows are `encoded` (for details by `placed`): `predictions`."""
        options, of_record = self.kind.options_of(options, self.models), [self.samples(rows) for rows in encoded]
        samples = [sample for each in of_record for sample in each]
        sizes = [len(sample) * max(map(len, sample)) for sample in samples]  # padded to the longest row
        scores: dict[int, Any] = {}
        for batch in batches(sizes, batch_size, max_tokens):
            scores |= zip(batch, self.scores([samples[index] for index in batch]), strict=True)
        in_order = map(scores.__getitem__, range(len(samples)))
        for record, own, parts in zip(records, encoded, of_record, strict=True):
            rows, outputs = [each.row for each in own], list(islice(in_order, len(parts)))
            refuse_nan(record, outputs)
            prediction = self.kind.predict(record, rows, outputs, self.loaded.labels, options)
            prediction.meta = record.meta
            if details and self.kind.details == "weights":
                prediction.segments = self._weighted(record, own[weighted_row(self.kind, prediction)])
            elif details:
                prediction.segments = self.kind.segments(record, rows, outputs, prediction)
            yield prediction
        self._unit_weights.clear()

    def samples(self, rows: list[Encoded]) -> list[list[Tensor]]:
        """Returns the samples of a record, each the (T,) token ids of a row or of all rows."""
        tokens = [each.tokens for each in rows]
        return [tokens] if self.kind.joins_rows else [[row] for row in tokens]

    @torch.no_grad()
    def scores(self, samples: Sequence[Sequence[Tensor]]) -> list[Any]:
        """Computes the mean scores of the models for each sample: an array, or arrays by name; see `Kind.scores`."""
        device = self.loaded.device
        tokens = padded([row for sample in samples for row in sample]).to(device)
        counts = torch.tensor(list(map(len, samples)), device=device)
        names, scores = list(self.kind.heads(len(self.loaded.labels))), []
        for model in self.models:
            encoded = model.encode(tokens)
            self._keep_unit_weights(model, encoded, samples)
            each_head = {name: model.head_logits(name, encoded, tokens) for name in names}
            logits = self.kind.logits(each_head, tokens, counts)
            named = logits if isinstance(logits, dict) else {"": logits}
            scores.append({name: self.kind.scores(each.float()) for name, each in named.items()})
        means = {name: torch.stack([each[name] for each in scores]).mean(dim=0).cpu().numpy() for name in scores[0]}
        each_sample = [{name: mean[index] for name, mean in means.items()} for index in range(len(samples))]
        return [each.get("", each) for each in each_sample]

    def _keep_unit_weights(self, model: Any, encoded: Any, samples: Sequence[Sequence[Tensor]]) -> None:
        """Keeps the weights of gated attention until the prediction of the sample, by the row that they are of."""
        for head in model.classification_heads.values():
            if hasattr(head, "unit_weights"):
                padding = safe_padding_mask(encoded.spans_padding)
                for (row,), own in zip(samples, head.unit_weights(encoded.spans, padding).tolist(), strict=True):
                    self._unit_weights[id(row)] = own[: int(row.eq(BOS).sum())]

    def _weighted(self, record: Record, encoded: Encoded) -> list[dict[str, Any]]:
        """The text of each segment of a row with its weight and its share; the whole text if the model has neither."""
        tokens = encoded.tokens.to(self.loaded.device)[None]
        if (gate := self._unit_weights.pop(id(encoded.tokens), None)) is not None:
            recorder, weights = Recorder(self.models[0].core, tokens), [{"weight": each} for each in gate]
        else:
            recorder, weights = segment_weights(self.models[0], tokens)
        if not weights:
            return [{"text": text_at(places_of_row(encoded.row, None), self.kind.texts_of_row(record, encoded.row))}]
        texts = unit_texts(recorder, record, encoded.row, self.pipeline)
        return [{"text": text, **each} for text, each in zip(texts, weights, strict=True)]


def refuse_nan(record: Record, outputs: Iterable[Any]) -> None:
    """Raises ValueError for scores of a record that are no numbers, or infinite; -inf is the score of what cannot be.

    `outputs`: of `Predictor.scores`.
    """
    arrays = (array for each in outputs for array in (each.values() if isinstance(each, dict) else [each]))
    if any(np.isnan(array).any() or np.isposinf(array).any() for array in arrays):
        raise ValueError(
            f"{record.name}: the model's scores are not numbers (NaN, or infinite). Its weights are NaN, or fp16 "
            "overflows: predict in fp32 or bf16"
        )


def check_details(kind: LabelledKind, details: bool) -> None:
    """Raises ValueError for details of a kind whose predictions have none."""
    if details and not kind.details:
        text = "{details} has no effect on the kind {}, whose predictions have none: remove it"
        raise OptionError(text, kind.name, details=None)


def weighted_row(kind: LabelledKind, prediction: Any) -> int:
    """Returns the number of the row whose segments' weights explain a prediction: that of the choice, else 0."""
    return int(prediction.label) if isinstance(kind, ChoiceKind) else 0


def labelled_kind(pipeline: TextPipeline, path: str) -> LabelledKind:
    """Returns the kind of data; ValueError for that of models that write texts."""
    if not isinstance(pipeline.kind, LabelledKind):
        verb = verb_of(pipeline.kind)
        raise ValueError(f"{path} was trained on the task {pipeline.kind.task}: it predicts no labels; use hat {verb}")
    return pipeline.kind


def shows_given_texts(kind: Kind) -> bool:
    """Returns whether the segments of a kind are shown as they were given; other tokens are decoded."""
    return isinstance(kind, LabelledKind) and kind.details == "weights"


def unit_texts(recorder: Recorder, record: Record, row: Row, pipeline: TextPipeline) -> tuple[str, ...]:
    """Returns the text of each unit of a row: as it was given if `shows_given_texts`, else as the model reads it."""
    kind = pipeline.kind
    if isinstance(kind, LabelledKind) and shows_given_texts(kind):
        texts = kind.texts_of_row(record, row)
        return tuple(text_at(unit, texts) for unit in recorder.by_unit(places_of_row(row, None)))
    return tuple(decoded(unit, pipeline) for unit in recorder.by_unit([*row.tokens, EOS_TOKEN]))


def decoded(words: Sequence[str], pipeline: TextPipeline) -> str:
    """Returns the text of some tokens; symbols that are no text stay as they are."""
    text = " ".join(words)
    return pipeline.decode(text, side="source") if pipeline.kind.is_text else text
