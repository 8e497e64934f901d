"""The parts that `look_text.py` and `look_labels.py` share: options, texts of units, and rows without a unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..analysis.recording import Recorder
from ..data.pipeline import TextPipeline
from ..data.record import Record


@dataclass(frozen=True)
class LookOptions:
    """Options of `hat look`."""

    occlusion: bool | None = False  # leave out each unit in turn; None: where a document has one label, several units
    chunk: int | None = 1  # which chunk of the document (or choice, or window), from 1; None: see `number`
    batch_size: int = 8  # rows in a batch of occlusion
    name: str = ""  # of the model

    def number(self, count: int, record: Record, default: int = 0) -> tuple[int, str]:
        """The number of the chunk from 0, without `chunk` the default; and a note for the reader.

        ValueError if the document has fewer.
        """
        chunk = default + 1 if self.chunk is None else self.chunk
        if not 1 <= chunk <= count:
            raise ValueError(f"--chunk {chunk}: {record.name} has {count} of them")
        return chunk - 1, f"Chunk {chunk} of {count}." if count > 1 else ""


def only(models: list[Any]) -> Any:
    """The model; ValueError if there are several."""
    if len(models) > 1:
        raise ValueError("attention is that of one model: give one checkpoint")
    return models[0]


def unit_texts(words: Sequence[str], numbers: Tensor, pipeline: TextPipeline) -> tuple[str, ...]:
    """The text of each unit, from the words and the unit of each; -1: of none."""
    units: list[list[str]] = [[] for _ in range(int(numbers.max()) + 1)]
    for word, unit in zip(words, numbers.tolist(), strict=True):
        if unit >= 0:
            units[unit].append(word)
    if not pipeline.kind.is_text:
        return tuple(" ".join(unit) for unit in units)
    return tuple(pipeline.decode(" ".join(unit), side="source") for unit in units)


def without(tokens: Tensor, recorder: Recorder) -> list[Tensor]:
    """The row without each unit in turn."""
    if recorder.num_units < 2:
        raise ValueError(f"--occlusion: the document has one {recorder.unit} only, and nothing is left without it")
    return [tokens[recorder.numbers != unit] for unit in range(recorder.num_units)]
