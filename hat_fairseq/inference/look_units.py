"""The parts that `look_text.py` and `look_labels.py` share: options, texts of units, and rows without a unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..analysis.recording import Recorder
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.rows import EOS, Row


@dataclass(frozen=True)
class LookOptions:
    """Options of `hat look`."""

    occlusion: bool | None = False  # leave out each unit in turn; None: where a document has one label, several units
    chunk: int = 1  # which chunk of the document (or choice, or window), from 1
    batch_size: int = 8  # rows in a batch of occlusion
    name: str = ""  # of the model

    def number(self, count: int, record: Record) -> tuple[int, str]:
        """The number of the chunk from 0, and a note for the reader; ValueError if the document has fewer."""
        if not 1 <= self.chunk <= count:
            raise ValueError(f"--chunk {self.chunk}: {record.name} has {count} of them")
        return self.chunk - 1, f"Chunk {self.chunk} of {count}." if count > 1 else ""


def only(models: list[Any]) -> Any:
    """The model; ValueError if there are several."""
    if len(models) > 1:
        raise ValueError("attention is that of one model: give one checkpoint")
    return models[0]


def words_of(row: Row, ids: Tensor, dictionary: Any) -> list[str]:
    """The words of a row; if it was truncated, those of the dictionary, with `<unk>`."""
    words = [*row.tokens, EOS]
    return words if len(words) == len(ids) else [dictionary.symbols[token] for token in ids.tolist()]


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
