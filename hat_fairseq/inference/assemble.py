"""Assembles predictions, one JSON line for each document, from the outputs for the rows of a dataset.

classification  {"id", "label", "probabilities": {label: p}}; likewise sequence, byte_sequence and byte_pair
choice          {"id", "label": "2", "probabilities": [p, ...]}
candidates      {"id", "label": "2", "probabilities": [p, ...]}
segments        {"id", "labels": [...]}, one for each segment; null for a truncated one
tokens          {"id", "labels": [...]}, one for each word, likewise
qa              {"id", "answer", "no_answer_score"}
document_qa     {"id", "type", "paragraph", "paragraph_score", "answer", "answer_paragraph", "start", "answer_score"}
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.files import read_lines
from ..data.record import Text
from ..data.rows import Chunk, Row, parse_spans
from ..tasks.encoder_task import EncoderTask
from ..tasks.row_dataset import RowDataset
from .answers import AnswerOptions, WindowAnswers, answer_question, window_answers
from .document_answers import answer_document, document_window

Prediction = dict[str, Any]
Best = list[tuple[str, float]]  # the n best answers to a question, with their scores


class Spans(Sequence[tuple[int, list[Any]]]):
    """For each row its number of elements and its spans (`Row`); lines of `bin/SPLIT.spans` are parsed when needed."""

    def __init__(self, rows: Sequence[Row] | Sequence[str]) -> None:
        self.rows = rows

    @classmethod
    def load(cls, path: Path, num_rows: int) -> "Spans":
        """Reads the spans of a split; ValueError if they are missing or not about so many rows."""
        if not path.is_file():
            raise ValueError(f"{path} is missing: it says which words or characters the tokens are; preprocess again")
        lines = [line for _, line in read_lines(path)]
        if len(lines) != num_rows:
            raise ValueError(f"{path} has {len(lines)} lines for {num_rows} rows: another subset?")
        return cls(lines)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        row = self.rows[index]
        return parse_spans(row) if isinstance(row, str) else (row.num_elements, row.spans)


class Assembler:
    """Turns outputs into predictions, in the order of the documents. This one: a label for each document.

    Args:
        task: with the classes.
        dataset: what it truncates to the model's length is removed from the spans, too.
        chunks: the line of the ids file for each row of the dataset.
        spans: of the rows, for the kinds whose predictions are about parts of the text.
        contexts: the texts of questions, by document id.
    """

    needs_spans = needs_contexts = False
    joins_rows = False  # a sample is all rows of a document

    def __init__(
        self,
        task: EncoderTask,
        dataset: RowDataset,
        chunks: Sequence[Chunk],
        spans: Spans | None = None,
        contexts: Mapping[str, Text] | None = None,
        options: AnswerOptions | None = None,
    ) -> None:
        self.labels, self.dataset, self.options = task.labels, dataset, options or AnswerOptions()
        self.spans, self.contexts = spans, contexts or {}
        self.first = [row for row, chunk in enumerate(chunks) if chunk.number == 0]  # row of each document
        # The line of the ids file for each sample.
        self.samples = [chunks[row] for row in self.first] if self.joins_rows else chunks

    def part(self, index: int, output: Any) -> Any:
        """Reduces the output for sample `index` of the dataset to its part of a prediction, here all of it.

        `output`: `task.scores` of the sample, padded at the end: a tensor, or several by their names.
        """
        named = dict(zip(self.labels, output.tolist(), strict=True))
        best = max(named, key=named.__getitem__)
        return {"id": self.samples[index].document_id, "label": best, "probabilities": named}

    def join(self, identifier: str, parts: list[Any]) -> tuple[Prediction, Best]:
        """The prediction for a document from its parts."""
        (prediction,) = parts
        return prediction, []

    def predictions(self, parts: Iterable[tuple[int, Any]]) -> Iterator[tuple[Prediction, Best]]:
        """Yields the prediction of each document; `parts`: index and `part` of every sample, in order."""
        for identifier, group in itertools.groupby(parts, key=lambda item: self.samples[item[0]].document_id):
            yield self.join(identifier, [part for _, part in group])

    def kept_spans(self, row: int) -> tuple[int, list[Any]]:
        """The spans of a row, without those of truncated tokens and of the final `</s>`."""
        assert self.spans is not None
        num_elements, spans = self.spans[row]
        if len(spans) + 1 != (length := int(self.dataset.dataset.sizes[row])):
            raise ValueError(f"row {row + 1} has {length - 1} tokens and {len(spans)} spans; run hat preprocess again")
        return num_elements, list(itertools.compress(spans, self.dataset.kept(row, len(spans) + 1)))


class PairAssembler(Assembler):
    """A label for each pair of rows."""

    joins_rows = True


class ChoiceAssembler(PairAssembler):
    """The chosen one of several continuations."""

    def count(self, index: int) -> int:
        """Number of choices."""
        return self.samples[index].count

    def part(self, index: int, output: Tensor) -> Any:
        output, identifier = output[: self.count(index)], self.samples[index].document_id
        return {"id": identifier, "label": str(int(output.argmax())), "probabilities": output.tolist()}


class CandidateAssembler(ChoiceAssembler):
    """The chosen one of several candidates, which are in one row."""

    needs_spans = True

    def count(self, index: int) -> int:
        return self.kept_spans(index)[0]


class SegmentAssembler(Assembler):
    """A label for each segment, from the outputs at the markers."""

    needs_spans = True

    def elements(self, row: int) -> list[tuple[int, int]]:
        """(place in the output, number of the element) for each element that is left in a row."""
        return list(enumerate(number for number in self.kept_spans(row)[1] if number is not None))

    def part(self, index: int, output: Tensor) -> Any:
        labels: list[str | None] = [None] * self.kept_spans(index)[0]
        best = output.argmax(dim=-1).tolist()
        for place, number in self.elements(index):
            labels[number] = self.labels[best[place]]
        return {"id": self.samples[index].document_id, "labels": labels}


class TokenAssembler(SegmentAssembler):
    """A label for each word, from the output at its first token."""

    def elements(self, row: int) -> list[tuple[int, int]]:
        return [(place, number) for place, number in enumerate(self.kept_spans(row)[1]) if number is not None]


class AnswerAssembler(Assembler):
    """The answer to each question, from the windows of its text."""

    needs_spans = needs_contexts = True

    def part(self, index: int, output: Tensor) -> Any:
        _, spans = self.kept_spans(index)
        return window_answers(output, spans, self.options.n_best, self.options.max_length)

    def join(self, identifier: str, parts: list[Any]) -> tuple[Prediction, Best]:
        self.check(identifier, parts)
        context = self.contexts[identifier]
        assert isinstance(context, str)
        answer, score, best = answer_question(parts, context, self.options.n_best, self.options.threshold)
        return {"id": identifier, "answer": answer, "no_answer_score": score}, best

    def check(self, identifier: str, windows: list[WindowAnswers]) -> None:
        """Raises ValueError if a question has no text, or none is left."""
        if not any(window.spans for window in windows):
            raise ValueError(f"question {identifier!r}: no text is left after truncation to the model's length")
        if identifier not in self.contexts:
            raise ValueError(f"there is no text for the question {identifier!r}: the examples are of another split")


class DocumentAnswerAssembler(AnswerAssembler):
    """The paragraph and the answer of each question, from the windows of its document."""

    def part(self, index: int, output: Any) -> Any:
        return document_window(output, self.kept_spans(index)[1], self.options)

    def join(self, identifier: str, parts: list[Any]) -> tuple[Prediction, Best]:
        self.check(identifier, [window.answers for window in parts])
        record, best = answer_document(parts, self.contexts[identifier], self.options)
        return {"id": identifier, **record}, best


#: The form of the predictions for each kind of data.
ASSEMBLERS: dict[str, type[Assembler]] = {
    "classification": Assembler,
    "sequence": Assembler,
    "byte_sequence": Assembler,
    "byte_pair": PairAssembler,
    "choice": ChoiceAssembler,
    "candidates": CandidateAssembler,
    "segments": SegmentAssembler,
    "tokens": TokenAssembler,
    "qa": AnswerAssembler,
    "document_qa": DocumentAnswerAssembler,
}


def chunks_of(rows: Iterable[Row]) -> list[Chunk]:
    """Returns the table of ids that `hat preprocess` would write for these rows."""
    return [Chunk(row.id, row.part, row.num_parts, row.segments) for row in rows]
