"""Predictions of examples, assembled from the outputs for the rows of a dataset."""

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


class Assembler:
    """Turns outputs into records, in the order of the examples.

    Args:
        task: with the kind of the data and the classes.
        chunks: the line of the ids file for each row of the data.
        dataset: of the same rows; tokens that it truncates to the model's length are removed from `rows`, too.
        examples: all of them; only kinds in `NEED_EXAMPLES` need them.
        rows: of all examples, likewise.
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
        """Returns the rows of sample `index` of the dataset: one, or for `choice` one for each choice."""
        if self.kind != "choice":
            return [self.rows[index]]
        return self.rows[self.first[index] : self.first[index] + self.choices[index]]

    def part(self, index: int, output: Tensor) -> Any:
        """Reduces the output for sample `index` to its part of a record: all of it, or for `qa` a `WindowAnswers`."""
        identifier = self.owners[index]
        if self.kind == "classification":
            return label_record(identifier, output, self.labels)
        if self.kind == "choice":
            return choice_record(identifier, output[: self.choices[index]])
        if self.kind == "qa":
            return window_answers(output, self.rows[index], self.options.n_best, self.options.max_length)
        return element_record(self.examples[identifier], self.rows[index], output, self.labels, self.kind)

    def records(self, parts: Iterable[tuple[int, Any]]) -> Iterator[tuple[Record, list[Any]]]:
        """Yields the record of each example, and for `qa` its n best answers.

        Args:
            parts: index and `part` of every sample, in order.
        """
        for identifier, group in itertools.groupby(parts, key=lambda item: self.owners[item[0]]):
            own_parts = [part for _, part in group]
            if self.kind == "qa":
                yield self._answer(identifier, own_parts)
            else:
                (record,) = own_parts
                yield record, []

    def _answer(self, identifier: str, windows: list[Any]) -> tuple[Record, list[Any]]:
        context = self.examples[identifier].inputs[0][1]
        assert isinstance(context, str)
        if not any(window.spans for window in windows):
            raise ValueError(f"question {identifier!r}: no text is left after truncation to the model's length")
        answer, score, best = answer_question(windows, context, self.options.n_best, self.options.threshold)
        return {"id": identifier, "answer": answer, "no_answer_score": score}, best


def encode(examples: Iterable[Example], pipeline: TextPipeline) -> list[EncodedRow]:
    """Returns the rows of all examples, their elements numbered (see `records.numbered`)."""
    return [row for example in examples for row in pipeline.encode_example(numbered(example, pipeline.settings.task))]


def chunks_of(rows: Iterable[EncodedRow]) -> list[Chunk]:
    """Returns the table of ids that `hat preprocess` would write for these rows."""
    return [Chunk(row.id, row.part, row.num_parts, row.segments) for row in rows]


def check_same(rows: Sequence[EncodedRow], chunks: Sequence[Chunk], examples_path: object, ids_path: object) -> None:
    """Refuses examples that are not those of the binary data.

    Raises:
        ValueError: naming the first that differs.
    """
    for expected, actual in itertools.zip_longest(chunks_of(rows), chunks):
        if expected != actual:
            first = actual or expected
            raise ValueError(
                f"{examples_path} does not belong to {ids_path}: they differ from {first.document_id!r} on; run hat "
                "preprocess again"
            )


def dataset_of(task: EncoderTask, rows: Sequence[EncodedRow], what: str) -> RowDataset:
    """Returns rows as a dataset of the task, without labels, truncated to the model's length by the task's policy.

    Args:
        task: with dictionary, policy and model.
        rows: as `encode` returns them.
        what: the origin of the rows, for messages.
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
