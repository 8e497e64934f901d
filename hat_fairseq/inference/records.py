"""Records of predictions, one JSON line for each example, from the outputs for its rows.

    classification  {"id", "label", "probabilities": {label: p}}
    choice          {"id", "label": "2", "probabilities": [p, ...]}
    segments        {"id", "labels": [...]}, one for each segment; null for a truncated one
    tokens          {"id", "labels": [...]}, one for each word, likewise
    qa              {"id", "answer", "no_answer_score"}

Legend: K classes or choices, N markers, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from ..data.encoded import BOS, EncodedRow
from ..data.example import Example
from ..data.labels import NO_LABEL

Record = dict[str, Any]

ELEMENTS = ("segments", "tokens")  # kinds with a label for each element of an example


@dataclass(frozen=True)
class AnswerOptions:
    """How answers are chosen.

    Args:
        n_best: how many are listed.
        max_length: longest answer, in tokens.
        threshold: a question has no answer if its no-answer score is greater.

    Raises:
        ValueError: one of the first two is below 1.
    """

    n_best: int = 20
    max_length: int = 30
    threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("n_best", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name.replace('_', '-')} of answers must be at least 1, not {getattr(self, name)}")


def numbered(example: Example, kind: str) -> Example:
    """Returns the example without its references.

    For kinds in `ELEMENTS` every element is labelled with its number, from 0: so the rows, also truncated ones, show
    which element stands where.
    """
    numbers = tuple(map(str, range(len(example.inputs[0][0])))) if kind in ELEMENTS else None
    return replace(example, label=None, labels=numbers, answers=None)


def without(row: EncodedRow, keep: np.ndarray) -> EncodedRow:
    """Returns the row without the tokens that are truncated.

    Args:
        row: a row of an example.
        keep: (T,) bool, the final `</s>` that fairseq appends included.
    """
    kept = [index for index, flag in enumerate(keep[:-1].tolist()) if flag]
    label = row.label
    if label is not None and len(label) == len(row.tokens):  # one for each token
        label = [label[index] for index in kept]
    elif label is not None:  # one for each marker
        markers = [index for index, token in enumerate(row.tokens) if token == BOS]
        label = [number for index, number in zip(markers, label, strict=True) if keep[index]]
    spans = None if row.spans is None else [row.spans[index] for index in kept]
    return replace(row, tokens=[row.tokens[index] for index in kept], label=label, spans=spans)


def elements(row: EncodedRow, kind: str) -> list[tuple[int, int]]:
    """Returns (index among the row's markers or tokens, number of the element) for each element left in a row.

    Args:
        row: of a `numbered` example.
        kind: one of `ELEMENTS`.
    """
    label = row.label or []
    if kind == "segments":
        return [(place, int(number)) for place, number in enumerate(label)]
    return [(place, int(number)) for place, number in enumerate(label) if number != NO_LABEL]


def label_record(identifier: str, probabilities: Tensor, labels: Sequence[str]) -> Record:
    """Returns the record of a class, from the (K,) probabilities of the classes `labels`."""
    named = {label: float(p) for label, p in zip(labels, probabilities.tolist(), strict=True)}
    return {"id": identifier, "label": max(named, key=named.__getitem__), "probabilities": named}


def choice_record(identifier: str, probabilities: Tensor) -> Record:
    """Returns the record of a choice, from the (K,) probabilities of the choices."""
    return {"id": identifier, "label": str(int(probabilities.argmax())), "probabilities": probabilities.tolist()}


def element_record(
    example: Example, row: EncodedRow, probabilities: Tensor, labels: Sequence[str], kind: str
) -> Record:
    """Returns the record of elements, from (N, K) or (T, K) probabilities at the row's markers or tokens."""
    names: list[str | None] = [None] * len(example.inputs[0][0])
    best = probabilities.argmax(dim=-1).tolist()
    for place, number in elements(row, kind):
        names[number] = labels[best[place]]
    return {"id": example.id, "labels": names}
