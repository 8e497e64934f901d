"""From what a model says about the rows of an example to one line of predictions.

    classification  {"id", "label", "probabilities": {label: p}}
    choice          {"id", "label": "2", "probabilities": [p, ...]}
    segments        {"id", "labels": [...]}, one for each segment; null for one that was cut off
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
    """The example without what is right; of `ELEMENTS` each one is labelled with its own number from 0, so that the
    rows tell which element stands where, whatever was cut."""
    numbers = tuple(map(str, range(len(example.inputs[0][0])))) if kind in ELEMENTS else None
    return replace(example, label=None, labels=numbers, answers=None)


def without(row: EncodedRow, keep: np.ndarray) -> EncodedRow:
    """The row without the tokens that a model has no room for.

    Args:
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
    """(place among the row's markers or tokens, number of the element) of each element that a row still has.

    Args:
        row: of a `numbered` example.
    """
    label = row.label or []
    if kind == "segments":
        return [(place, int(number)) for place, number in enumerate(label)]
    return [(place, int(number)) for place, number in enumerate(label) if number != NO_LABEL]


def label_record(identifier: str, probabilities: Tensor, labels: Sequence[str]) -> Record:
    """(K,) probabilities of the classes `labels`."""
    named = {label: float(p) for label, p in zip(labels, probabilities.tolist(), strict=True)}
    return {"id": identifier, "label": max(named, key=named.__getitem__), "probabilities": named}


def choice_record(identifier: str, probabilities: Tensor) -> Record:
    """(K,) probabilities of the choices."""
    return {"id": identifier, "label": str(int(probabilities.argmax())), "probabilities": probabilities.tolist()}


def element_record(
    example: Example, row: EncodedRow, probabilities: Tensor, labels: Sequence[str], kind: str
) -> Record:
    """(N, K) or (T, K) probabilities at the row's markers or tokens."""
    found: list[str | None] = [None] * len(example.inputs[0][0])
    best = probabilities.argmax(dim=-1).tolist()
    for place, number in elements(row, kind):
        found[number] = labels[best[place]]
    return {"id": example.id, "labels": found}
