"""Records of predictions, one JSON line for each example, from the outputs for the rows of a dataset.

classification  {"id", "label", "probabilities": {label: p}}
choice          {"id", "label": "2", "probabilities": [p, ...]}
segments        {"id", "labels": [...]}, one for each segment; null for a truncated one
tokens          {"id", "labels": [...]}, one for each word, likewise
qa              {"id", "answer", "no_answer_score"}
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from ..data.encoded import BOS, EncodedRow
from ..data.example import Example
from ..data.ids import Chunk
from ..data.labels import NO_LABEL
from ..data.pipeline import TextPipeline
from ..tasks.encoder_task import EncoderTask
from ..tasks.row_dataset import RowDataset
from .answers import AnswerOptions, answer_question, window_answers

Record = dict[str, Any]

#: Kinds with a label for each element of an example.
ELEMENTS = ("segments", "tokens")
#: Kinds whose predictions are about parts of the text, so that the examples themselves are needed.
NEED_EXAMPLES = (*ELEMENTS, "qa")


class Assembler:
    """Turns outputs into records, in the order of the examples.

    Args:
        task: with the kind of the data and the classes.
        dataset: tokens that it truncates to the model's length are removed from `rows`, too.
        chunks: the line of the ids file for each row of the dataset.
        examples: all of them; only kinds in `NEED_EXAMPLES` need them.
        rows: of all examples, as `encode` returns them, likewise.
        options: of answers.
    """

    def __init__(
        self,
        task: EncoderTask,
        dataset: RowDataset,
        chunks: Sequence[Chunk],
        examples: Iterable[Example] = (),
        rows: Iterable[EncodedRow] = (),
        options: AnswerOptions | None = None,
    ) -> None:
        self.kind, self.labels, self.options = task.kind, task.labels, options or AnswerOptions()
        self.examples = {example.id: example for example in examples}
        self.rows = [_without(row, dataset.kept(index, len(row.tokens) + 1)) for index, row in enumerate(rows)]
        self.first = [row for row, chunk in enumerate(chunks) if chunk.number == 0]  # row of each example
        self.samples = [chunks[row] for row in self.first] if self.kind == "choice" else chunks

    def part(self, index: int, output: Tensor) -> Any:
        """Reduces the output for sample `index` to its part of a record: all of it, or for `qa` a `WindowAnswers`.

        Args:
            index: number of the sample in the dataset.
            output: probabilities, (K,) of classes or choices, or (N, K), (T, K) at markers or tokens; logits for `qa`.
        """
        chunk, record = self.samples[index], {"id": self.samples[index].document_id}
        if self.kind == "qa":
            return window_answers(output, self.rows[index], self.options.n_best, self.options.max_length)
        if self.kind == "classification":
            named = dict(zip(self.labels, output.tolist(), strict=True))
            return record | {"label": max(named, key=named.__getitem__), "probabilities": named}
        if self.kind == "choice":
            output = output[: chunk.count]
            return record | {"label": str(int(output.argmax())), "probabilities": output.tolist()}
        labels: list[str | None] = [None] * len(self.examples[chunk.document_id].inputs[0][0])
        best = output.argmax(dim=-1).tolist()
        for place, number in elements(self.rows[index]):
            labels[number] = self.labels[best[place]]
        return record | {"labels": labels}

    def records(self, parts: Iterable[tuple[int, Any]]) -> Iterator[tuple[Record, list[tuple[str, float]]]]:
        """Yields the record of each example, and for `qa` its n best answers with their scores.

        Args:
            parts: index and `part` of every sample, in order.
        """
        for identifier, group in itertools.groupby(parts, key=lambda item: self.samples[item[0]].document_id):
            own_parts = [part for _, part in group]
            if self.kind == "qa":
                yield self._answer(identifier, own_parts)
            else:
                (record,) = own_parts
                yield record, []

    def _answer(self, identifier: str, windows: list[Any]) -> tuple[Record, list[tuple[str, float]]]:
        context = self.examples[identifier].inputs[0][1]
        assert isinstance(context, str)
        if not any(window.spans for window in windows):
            raise ValueError(f"question {identifier!r}: no text is left after truncation to the model's length")
        answer, score, best = answer_question(windows, context, self.options.n_best, self.options.threshold)
        return {"id": identifier, "answer": answer, "no_answer_score": score}, best


def encode(examples: Iterable[Example], pipeline: TextPipeline) -> list[EncodedRow]:
    """Returns the rows of all examples, without their references.

    For kinds in `ELEMENTS` every element is labelled with its number, from 0: so the rows, also truncated ones, show
    which element stands where.
    """
    rows = []
    for example in examples:
        numbers = tuple(map(str, range(len(example.inputs[0][0])))) if pipeline.settings.task in ELEMENTS else None
        rows += pipeline.encode_example(replace(example, label=None, labels=numbers, answers=None))
    return rows


def elements(row: EncodedRow) -> list[tuple[int, int]]:
    """Returns (index among the row's markers or tokens, number of the element) for each element left in a row."""
    return [(place, int(number)) for place, number in enumerate(row.label or ()) if number != NO_LABEL]


def chunks_of(rows: Iterable[EncodedRow]) -> list[Chunk]:
    """Returns the table of ids that `hat preprocess` would write for these rows."""
    return [Chunk(row.id, row.part, row.num_parts, row.segments) for row in rows]


def _without(row: EncodedRow, keep: np.ndarray) -> EncodedRow:
    """Returns the row without truncated tokens; `keep`: (T,) bool, the final `</s>` that fairseq appends included."""
    label = row.label
    if label is not None:
        at_markers = len(label) != len(row.tokens)  # one for each of them, not for each token
        kept = [flag for flag, token in zip(keep, row.tokens, strict=False) if not at_markers or token == BOS]
        label = list(itertools.compress(label, kept))
    spans = None if row.spans is None else list(itertools.compress(row.spans, keep))
    return replace(row, tokens=list(itertools.compress(row.tokens, keep)), label=label, spans=spans)
