"""What workers do with a batch of records: write texts, predict labels, make pages.

A job loads its models for its first batch.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from ..analysis.page import page, summary
from ..data.blocks import digest
from ..data.record import Record
from ..data.records_json import json_line
from ..generation.options import check_options, packaged_options
from .batches import ModelFiles, Result
from .labels import Predictor
from .look_labels import look_at_labels
from .look_text import look_at_text
from .look_units import LookOptions
from .rows import check_batch_size
from .texts import DocumentToText

OTHER_SEGMENTS = "texts with another number of segments than their source"


@dataclass
class Texts:
    """Writes the texts of documents; see `DocumentToText`.

    `seed`: that of sampling; a text depends on it and on the documents of its batch.
    """

    files: ModelFiles
    generation: dict[str, Any]
    batch_size: int | None = None
    max_tokens: int | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        check_options(self.generation, "generation")
        check_batch_size(self.batch_size)

    @cached_property
    def model(self) -> DocumentToText:
        return DocumentToText(self.files.load(), **packaged_options(self.files.path) | self.generation)

    def __call__(self, documents: Sequence[Record]) -> Result:
        model = self.model
        before, other_segments = Counter(model.pipeline.counts), model.other_segments
        torch.manual_seed(int(digest(self.seed, *map(json_line, documents))[:15], 16))
        lines = list(model.rows(documents, self.batch_size, self.max_tokens))
        counts = model.pipeline.counts - before
        counts[OTHER_SEGMENTS] = model.other_segments - other_segments
        return Result(lines, counts)


@dataclass
class Labels:
    """Predicts records; see `Predictor.predictions` for the arguments."""

    files: ModelFiles
    batch_size: int | None
    max_tokens: int | None
    options: Any
    details: bool
    layer: int | None

    @cached_property
    def model(self) -> Predictor:
        return Predictor(self.files.load())

    def __call__(self, records: Sequence[Record]) -> Result:
        before = Counter(self.model.pipeline.counts)
        sizes = self.batch_size, self.max_tokens
        predictions = self.model.predictions(records, *sizes, self.options, self.details, self.layer)
        return Result([each.to_json() for each in predictions], self.model.pipeline.counts - before)


@dataclass
class Pages:
    """Makes the page of `hat look` and its line of the overview; None where there is nothing to show."""

    files: ModelFiles
    options: LookOptions
    reference: bool
    generation: dict[str, Any]

    @cached_property
    def model(self) -> DocumentToText | Predictor:
        loaded = self.files.load()
        if not loaded.pipeline.kind.has_target:
            return Predictor(loaded)
        return DocumentToText(loaded, **packaged_options(self.files.path) | self.generation)

    def __call__(self, records: Sequence[Record]) -> Result:
        model = self.model
        before = Counter(model.pipeline.counts)
        looks = [
            look_at_labels(model, record, self.options)
            if isinstance(model, Predictor)
            else look_at_text(model, record, self.options, self.reference)
            for record in records
        ]
        pages = [(page(look), summary(look)) if look.maps or look.occlusion else None for look in looks]
        return Result(pages, model.pipeline.counts - before)
