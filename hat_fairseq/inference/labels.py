"""Labels and answers for raw documents from a trained model (`hat classify`, and `DocumentClassifier`)."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, Self

from torch import Tensor

from ..analysis.recording import BatchRecorder, segment_attentions
from ..data.record import Record
from ..data.rows import Row
from ..tasks.encoder_task import EncoderTask
from ..tasks.raw_documents import indexed, row_of, warn_of_changes
from .answers import AnswerOptions
from .assemble import ASSEMBLERS, Assembler, Prediction, SegmentAssembler, Spans, chunks_of
from .command import check_batch_size
from .loading import Data, Predictor, load_models, pipeline_of
from .look_units import unit_texts

#: Kinds with one prediction from all segments: these segments have weights.
WITH_WEIGHTS = ("classification", "choice")


class DocumentClassifier(Predictor):
    """A fine-tuned model with its task; it encodes raw examples like the training data and predicts.

    `layer`: the one whose attention gives the weights of segments; None for the mean of all. ValueError for several
    models, data without pipeline.json, or a layer that does not attend between segments.
    """

    def __init__(
        self, models: list[Any], task: EncoderTask, layer: int | None = None, options: AnswerOptions | None = None
    ) -> None:
        if len(models) > 1:
            raise ValueError("weights of segments are those of one model: give one checkpoint")
        super().__init__(models, task)
        self.pipeline, self.options = pipeline_of(task), options
        self.shown = segment_attentions(self.models[0].core, layer) if task.kind in WITH_WEIGHTS else None
        self.rows_cut = 0

    @classmethod
    def from_pretrained(
        cls,
        checkpoint: str,
        data: Data = None,
        device: str | None = None,
        precision: str = "fp32",
        layer: int | None = None,
        options: AnswerOptions | None = None,
    ) -> Self:
        """Loads a checkpoint; see `loading.load_models`, also for errors, and the class for `layer` and `options`."""
        return cls(*load_models(checkpoint, data, EncoderTask, device, precision), layer, options)

    def rows(self, examples: Iterable[Record], batch_size: int = 1) -> Iterator[Prediction]:
        """Yields the prediction of each example, in order and as soon as it is computed.

        The record is that of `hat predict` (see `assemble.py`). `classification`, `choice` (the chosen one) and
        `segments` add `"segments"`: the text of each, and its `weight` and `share` (see `BatchRecorder`) or its
        label and the probability of the label. All examples are encoded first, so a bad one is a ValueError before
        anything is predicted. Changes and truncation of the input are logged.
        """
        check_batch_size(batch_size)
        examples = list(examples)
        if not examples:
            return
        before = Counter(self.pipeline.counts)
        rows = [row for example in examples for row in self.pipeline.encode(example)]
        chunks, dictionary = chunks_of(rows), self.task.source_dictionary
        ids = [row_of(row.tokens, dictionary) for row in rows]
        dataset = self.task.build_dataset(indexed(ids), "the input", chunks=chunks)
        self.rows_cut = len(dataset.removed)
        warn_of_changes(self.pipeline.counts - before, ids, dictionary)
        contexts = {example.id: example.parts[-1] for example in examples}
        form = ASSEMBLERS[self.task.kind]
        assembler = form(self.task, dataset, chunks, Spans(rows), contexts, self.options)
        texts = {example.id: example.sentences or () for example in examples}
        meta = {example.id: example.meta for example in examples if example.meta is not None}

        def parts() -> Iterator[tuple[int, Any]]:
            for start in range(0, len(dataset), batch_size):
                batch = range(start, min(start + batch_size, len(dataset)))
                sample = dataset.collater([dataset[index] for index in batch])
                yield from self._parts(sample, assembler, rows, texts)

        for record, best in assembler.predictions(parts()):
            more = {"n_best": [{"text": text, "score": score} for text, score in best]} if best else {}
            yield record | more | ({"meta": meta[record["id"]]} if record["id"] in meta else {})

    def _parts(
        self, sample: dict[str, Any], assembler: Assembler, rows: list[Row], texts: dict[str, tuple[str, ...]]
    ) -> Iterator[tuple[int, Any]]:
        """Yields the index and the part of each sample of a batch, with its segments."""
        tokens, recorder = sample["net_input"]["src_tokens"], None
        if self.shown is not None:
            recorder = BatchRecorder(self.models[0], tokens, self.shown)
        with recorder or nullcontext():
            outputs = self(sample)
        counts = sample["choices"].tolist() if self.task.kind == "choice" else [1] * sample["nsentences"]
        first = 0  # row of the batch where the sample begins
        for index, output, count in zip(sample["id"].tolist(), outputs, counts, strict=True):
            part = assembler.part(index, output)
            if self.task.kind == "segments":
                part["segments"] = _labelled(assembler, index, part, output, texts[part["id"]])
            elif recorder is not None:
                chosen = int(part["label"]) if self.task.kind == "choice" else 0
                row = assembler.first[index] + chosen
                kept = itertools.compress(rows[row].tokens, assembler.dataset.kept(row, len(rows[row].tokens) + 1))
                part["segments"] = self._weighted(list(kept), recorder, first + chosen)
            yield index, part
            first += count

    def _weighted(self, words: list[str], recorder: BatchRecorder, place: int) -> list[Prediction]:
        """Returns the text, weight and share of each segment of a row.

        `words`: its tokens without the final `</s>`, which is no text; `place`: its number in the recorder's batch.
        """
        texts = unit_texts(words, recorder.rows[place, : len(words)], self.pipeline)
        segments: list[Prediction] = [{"text": text} for text in texts]
        for name, values in (("weight", recorder.attention), ("share", recorder.share)):
            if values is not None:
                for segment, value in zip(segments, values[place].tolist(), strict=False):
                    segment[name] = value
        return segments


def _labelled(
    assembler: Assembler, index: int, prediction: Prediction, output: Tensor, texts: tuple[str, ...]
) -> list[Prediction]:
    """Returns the text of each segment as given, its label and the probability of the label."""
    assert isinstance(assembler, SegmentAssembler)
    best = output.max(dim=-1).values.tolist()
    probabilities = {number: best[place] for place, number in assembler.elements(index)}
    return [
        {"text": text, "label": label, "probability": probabilities.get(number)}
        for number, (text, label) in enumerate(zip(texts, prediction["labels"], strict=True))
    ]
