"""Labels of documents (or of pairs of texts), of their segments, and of words."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hat_fairseq.data.dictionary import BOS, NO_LABEL, label_token
from hat_fairseq.data.kind import IGNORED, Array, LabelledKind, Prediction, class_numbers, labelled
from hat_fairseq.data.record import Record, Text, Texts, as_label, as_labels
from hat_fairseq.data.rows import Part, Row, RowEncoder, at_markers, marked, marked_pairs
from hat_fairseq.data.sentences import Divided, Divider, Prepared


@dataclass(frozen=True)
class LabelledText(
    Record,
    reads=("text", "segments", "second"),
    one_of=("text", "segments"),
    gold="label",
    repairs={"label": as_label},
):
    """A text, or a pair of texts, with a label."""

    second: Text | None = None
    text: str | None = None
    segments: Texts | None = None
    label: str | None = None


@dataclass(frozen=True)
class LabelledSegments(Record, reads=("segments",), gold="labels", repairs={"labels": as_labels}):
    """Segments with a label each."""

    segments: Texts
    labels: Texts | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_labels(self, "segments")


@dataclass(frozen=True)
class LabelledWords(Record, reads=("words",), gold="labels", repairs={"labels": as_labels}):
    """Words with a label each."""

    words: Texts
    labels: Texts | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_labels(self, "words")


def _check_labels(record: Any, elements: str) -> None:
    if record.labels is not None and len(record.labels) != (count := len(getattr(record, elements))):
        raise ValueError(f"{record.place} has {len(record.labels)} labels for {count} {elements}")


class ClassificationKind(LabelledKind):
    """A label for each document, or for each pair of texts: targets (B,), logits (B, K)."""

    name, task = "classification", "document_classification"
    record = LabelledText
    details = "weights"

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Divides the text, and the second one."""
        first, *second = record.parts
        return [divider.text(record, first), *(divider.short_text(record, text) for text in second)]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row of one or two parts."""
        parts = [Part(marked(encoder.text(text))) for text in prepared.texts]
        row = encoder.row(prepared.record, parts)
        return [Row(prepared.record.id, 0, 1, labelled(prepared.record, row.tokens))]


@dataclass
class ElementLabels(Prediction):
    """A label for each segment or word of a record; None for one that was truncated in preprocessing."""

    labels: list[str | None]


class ElementKind(LabelledKind):
    """A label for each element of a text."""

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Returns the given segments or words."""
        return [divider.sentences(record, record.parts[0], element=self.element)]

    def gold_labels(self, record: Any) -> tuple[str, ...]:
        return record.labels

    @abstractmethod
    def places(self, row: Row) -> Iterator[tuple[int, int]]:
        """Returns (place in the output, number of the element) for each element of a row."""

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> ElementLabels:
        predicted: list[str | None] = [None] * len(record.parts[0])
        best = outputs[0].argmax(axis=-1)
        for place, number in self.places(rows[0]):
            predicted[number] = labels[best[place]]
        return ElementLabels(record.id, predicted)


class SegmentKind(ElementKind):
    """A label for each of N segments, from the state at its `<s>`: targets (B, N), logits (B, N, K)."""

    name, task = "segments", "segment_classification"
    record: ClassVar[type[Record]] = LabelledSegments
    element = "segment"
    head_level = "segment"
    keeps = "element"
    details = "segments"

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row of given segments; the label has one for each marker."""
        segments = encoder.units(*prepared.texts)
        row = encoder.row(prepared.record, [Part(marked(segments), at_markers(segments, range(len(segments))))])
        return [_with_elements(encoder, prepared.record, row, None)]

    def target_size(self, tokens: int, markers: int) -> int:
        return markers

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns a class for each `<s>`."""
        return class_numbers(label, int((tokens == BOS).sum()), classes)

    def places(self, row: Row) -> Iterator[tuple[int, int]]:
        return enumerate(number for number in row.elements if number is not None)

    def segments(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], prediction: ElementLabels
    ) -> list[dict[str, Any]] | None:
        """Returns the text, the label and its probability."""
        best = outputs[0].max(axis=-1).tolist()
        probabilities = {number: best[place] for place, number in self.places(rows[0])}
        return [
            {"text": text, "label": label, "probability": probabilities.get(number)}
            for number, (text, label) in enumerate(zip(record.elements or (), prediction.labels, strict=True))
        ]


class WordKind(ElementKind):
    """A label for each word, at its first BPE piece: targets (B, T), logits (B, T, K); other tokens have no label."""

    name, task = "tokens", "token_classification"
    record = LabelledWords
    element = "word"
    keeps = "whole"
    head_level = "token"

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row of words; its label has one for each token: that of a word at its first piece, else none."""
        words = [
            [(first, number), *((token, None) for token in others)]
            for number, (first, *others) in enumerate(encoder.units(*prepared.texts))
        ]
        row = encoder.row(prepared.record, [Part(*marked_pairs(encoder.segments(words, whole=True)))])
        return [_with_elements(encoder, prepared.record, row, NO_LABEL)]

    def target_size(self, tokens: int, markers: int) -> int:
        return tokens

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> list[int]:
        """Returns a class for each token, or none."""
        return [*class_numbers(label, len(tokens) - 1, classes), IGNORED]

    def places(self, row: Row) -> Iterator[tuple[int, int]]:
        return ((place, number) for place, number in enumerate(row.elements) if number is not None)


def _with_elements(encoder: RowEncoder, record: Any, row: Part, no_label: str | None) -> Row:
    """The row of a record, with the labels of the elements that its tokens stand for."""
    streams = {"source": row.tokens}
    if record.labels is not None:
        labels = [no_label if number is None else label_token(record.labels[number]) for number in row.elements]
        streams["label"] = [label for label in labels if label is not None]
        encoder.counts["labels_lost"] += len(record.labels) - sum(number is not None for number in row.elements)
    return Row(record.id, 0, 1, streams, row.elements)
