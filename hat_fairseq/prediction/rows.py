"""Which rows of a dataset are which example, and from their outputs to records in the order of the examples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from fairseq.data import ListDataset
from torch import Tensor

from ..data.encoded import EncodedRow
from ..data.example import Example
from ..data.ids import Chunk
from ..data.pipeline import TextPipeline
from ..tasks.encoder_task import EncoderTask
from ..tasks.fit_rows import kept
from ..tasks.row_dataset import ChoiceDataset, RowDataset
from .answers import answer_question, window_answers
from .records import ELEMENTS, AnswerOptions, Record, choice_record, element_record, label_record, numbered, without

#: Kinds whose predictions are about parts of the text, so that the examples themselves are needed.
NEED_EXAMPLES = (*ELEMENTS, "qa")


class Reader:
    """Turns outputs into records.

    Args:
        task: says the kind and the classes.
        chunks: a line for each row of the data.
        dataset: of the same rows; what it removes for the model's sake is removed from `rows` as well.
        examples, rows: all examples and their rows; only `NEED_EXAMPLES` need them.
        options: of answers.
    Raises:
        ValueError: the rows are not those of the dataset.
    """

    def __init__(
        self,
        task: EncoderTask,
        chunks: Sequence[Chunk],
        dataset: RowDataset,
        examples: Sequence[Example] = (),
        rows: Sequence[EncodedRow] = (),
        options: AnswerOptions | None = None,
    ) -> None:
        self.kind, self.labels, self.options = task.kind, task.labels, options or AnswerOptions()
        self.examples = {example.id: example for example in examples}
        self.rows = [without(row, kept(len(row.tokens) + 1, piece)) for row, piece in _with_removed(rows, dataset)]
        owners = [chunk.document_id for chunk in chunks if self.kind != "choice" or chunk.number == 0]
        if len(owners) != len(dataset):
            raise ValueError(f"{len(dataset)} samples, but ids for {len(owners)}; run hat preprocess again")
        self.owners = owners  # of each sample of the dataset
        self.choices = [chunk.count for chunk in chunks if chunk.number == 0]
        self.first = [row for row, chunk in enumerate(chunks) if chunk.number == 0]  # row of each example

    def rows_of(self, index: int) -> list[EncodedRow]:
        """The rows of sample `index` of the dataset: one, or the choices."""
        if self.kind != "choice":
            return [self.rows[index]]
        return self.rows[self.first[index] : self.first[index] + self.choices[index]]

    def read(self, index: int, output: Tensor) -> Any:
        """What is worth keeping of the outputs of sample `index`: a record, or for `qa` what a window says."""
        identifier = self.owners[index]
        if self.kind == "classification":
            return label_record(identifier, output, self.labels)
        if self.kind == "choice":
            return choice_record(identifier, output[: self.choices[index]])
        if self.kind == "qa":
            return window_answers(output, self.rows[index], self.options.n_best, self.options.max_length)
        return element_record(self.examples[identifier], self.rows[index], output, self.labels, self.kind)

    def records(self, outputs: Iterable[tuple[int, Any]]) -> Iterator[tuple[Record, list[Any]]]:
        """Yield the record of each example, for `qa` with the answers next to the best; from what `read` returned for
        each sample, in order."""
        for identifier, group in itertools.groupby(outputs, key=lambda output: self.owners[output[0]]):
            read = [part for _, part in group]
            if self.kind == "qa":
                yield self._answer(identifier, read)
            else:
                (record,) = read
                yield record, []

    def _answer(self, identifier: str, windows: list[Any]) -> tuple[Record, list[Any]]:
        context = self.examples[identifier].inputs[0][1]
        assert isinstance(context, str)
        if not any(window.spans for window in windows):
            raise ValueError(f"question {identifier!r}: nothing of its text is left, cut to the model's length")
        answer, score, best = answer_question(windows, context, self.options.n_best, self.options.threshold)
        return {"id": identifier, "answer": answer, "no_answer_score": score}, best


def encode(examples: Iterable[Example], pipeline: TextPipeline) -> list[EncodedRow]:
    """The rows of all examples, elements numbered (see `records.numbered`)."""
    return [row for example in examples for row in pipeline.encode_example(numbered(example, pipeline.settings.task))]


def chunks_of(rows: Iterable[EncodedRow]) -> list[Chunk]:
    """The table of ids that `hat preprocess` would write for these rows."""
    return [Chunk(row.id, row.part, row.num_parts, row.segments) for row in rows]


def check_same(rows: Sequence[EncodedRow], chunks: Sequence[Chunk], examples_path: object, ids_path: object) -> None:
    """Refuse examples that are not those of the binary data.

    Raises:
        ValueError: naming the first that differs.
    """
    for ours, theirs in itertools.zip_longest(chunks_of(rows), chunks):
        if ours != theirs:
            first = theirs or ours
            raise ValueError(
                f"{examples_path} does not belong to {ids_path}: they differ from {first.document_id!r} on; run hat "
                "preprocess again"
            )


def dataset_of(task: EncoderTask, rows: Sequence[EncodedRow], what: str) -> RowDataset:
    """Raw rows as a dataset of the task, without labels, cut to the model's length by the task's policy.

    Args:
        what: for messages: where the rows come from.
    """
    dictionary = task.source_dictionary
    ids = [torch.tensor([*map(dictionary.index, row.tokens), dictionary.eos()]) for row in rows]
    data = ListDataset(ids, [row.numel() for row in ids])
    removed = task.fit(data, what)
    if task.kind == "choice":
        return ChoiceDataset(data, None, removed, dictionary.pad(), chunks=chunks_of(rows), right=0, what=what)
    return RowDataset(data, None, removed, dictionary.pad())


def _with_removed(rows: Sequence[EncodedRow], dataset: RowDataset) -> Iterator[tuple[EncodedRow, slice]]:
    removed: Mapping[int, slice] = dataset.removed
    for index, row in enumerate(rows):
        yield row, removed.get(index, slice(0, 0))
