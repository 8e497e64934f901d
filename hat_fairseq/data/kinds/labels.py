"""Labels of documents (or of pairs of texts), of their segments, and of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hat_fairseq.data import encode_examples, records
from hat_fairseq.data.dictionary import BOS
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.kind import IGNORED, Array, LabelledKind, Prediction, class_numbers
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row


class Classification(LabelledKind):
    """A label for each document, or for each pair of texts: targets (B,), logits (B, K)."""

    name, task = "classification", "document_classification"
    record = records.LabelledText
    has_segment_weights = True

    def encode(self, encoder: Encoder, record: Record) -> list[Row]:
        return encode_examples.encode_pair(encoder, record)


@dataclass
class ElementLabels(Prediction):
    """A label for each segment or word of a record; None for one that was truncated in preprocessing."""

    labels: list[str | None]


class Segments(LabelledKind):
    """A label for each of N segments, from the state at its `<s>`: targets (B, N), logits (B, N, K)."""

    name, task = "segments", "segment_classification"
    record: ClassVar[type[Record]] = records.LabelledSegments
    divided = True
    head_level = "segment"

    def encode(self, encoder: Encoder, record: Record) -> list[Row]:
        return encode_examples.encode_segments(encoder, record)

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return record.labels

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """A class for each `<s>`."""
        return class_numbers(label, int((tokens == BOS).sum()), classes)

    def no_target(self, num_tokens: int, num_markers: int) -> list[int]:
        return [0] * num_markers

    def places(self, row: Row) -> Iterator[tuple[int, int]]:
        """(place in the output, number of the element) for each element of a row."""
        return enumerate(number for number in row.spans if number is not None)

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> ElementLabels:
        predicted: list[str | None] = [None] * rows[0].num_elements
        best = outputs[0].argmax(axis=-1)
        for place, number in self.places(rows[0]):
            predicted[number] = labels[best[place]]
        return ElementLabels(record.id, predicted)

    def segments(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], prediction: ElementLabels
    ) -> list[dict[str, Any]] | None:
        """The text, the label and its probability."""
        best = outputs[0].max(axis=-1).tolist()
        probabilities = {number: best[place] for place, number in self.places(rows[0])}
        return [
            {"text": text, "label": label, "probability": probabilities.get(number)}
            for number, (text, label) in enumerate(zip(record.sentences or (), prediction.labels, strict=True))
        ]


class Words(Segments):
    """A label for each word, at its first BPE piece: targets (B, T), logits (B, T, K); other tokens have no label."""

    name, task = "tokens", "token_classification"
    record = records.LabelledWords
    words = True
    head_level = "token"

    def encode(self, encoder: Encoder, record: Record) -> list[Row]:
        return encode_examples.encode_words(encoder, record)

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """A class for each token, or none."""
        return [*class_numbers(label, len(tokens) - 1, classes), IGNORED]

    def no_target(self, num_tokens: int, num_markers: int) -> list[int]:
        return [0] * num_tokens

    def segments(self, *unused: Any, **named: Any) -> None:
        """Nothing: words are no segments."""

    def places(self, row: Row) -> Iterator[tuple[int, int]]:
        return ((place, number) for place, number in enumerate(row.spans) if number is not None)
