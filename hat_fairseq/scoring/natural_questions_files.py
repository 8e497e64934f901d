"""Annotations and predictions of Natural Questions in the format of its release; see also `official_qa.py`.

Annotations are original ones (offsets in bytes of the HTML and in tokens) or simplified ones (in tokens). Predictions
are one JSON object, `{"predictions": [...]}`, with either kind of offsets or both.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hat_fairseq.data.files import Fields, read_json
from hat_fairseq.data.outputs import atomic_file

from .official_qa import (
    Offsets,
    by_id,
    part_of,
    question_lines,
    read_annotations,
    read_number,
    read_offsets,
    read_yes_no,
)


class Span(NamedTuple):
    """A part of a document of Natural Questions by its offsets in bytes, in tokens, or both."""

    byte: Offsets = None
    token: Offsets = None

    def same(self, other: "Span") -> bool:
        """Whether bytes or tokens are known of both and equal; one of the two suffices."""
        return any(ours is not None and ours == theirs for ours, theirs in zip(self, other, strict=True))

    def record(self) -> dict[str, int]:
        """The span as in the files."""
        names = ("start_byte", "end_byte", "start_token", "end_token")
        return dict(zip(names, (*(self.byte or (-1, -1)), *(self.token or (-1, -1))), strict=True))


class NaturalAnswer(NamedTuple):
    """An annotator's or a model's answer to a question of Natural Questions."""

    long_answer: Span | None = None
    short_answers: tuple[Span, ...] = ()
    yes_no: str = "none"  # of YES_NO


class NaturalPrediction(NamedTuple):
    """A model's answer to a question of Natural Questions; a higher score means a surer answer."""

    example_id: int
    answer: NaturalAnswer
    long_score: float
    short_score: float

    def record(self) -> dict[str, Any]:
        """The prediction as an item of `predictions`."""
        return {
            "example_id": self.example_id,
            "long_answer": (self.answer.long_answer or Span()).record(),
            "long_answer_score": self.long_score,
            "short_answers": [span.record() for span in self.answer.short_answers],
            "short_answers_score": self.short_score,
            "yes_no_answer": self.answer.yes_no.upper(),
        }


def read_natural_annotations(paths: Sequence[str | Path]) -> dict[int, tuple[NaturalAnswer, ...]]:
    """The annotations of each question in the parts of a release; ValueError, as all readers here, with the place."""
    return by_id(question_lines(*paths), lambda fields: read_annotations(fields, _natural_answer))


def read_natural_predictions(path: str | Path) -> dict[int, NaturalPrediction]:
    """The prediction for each question in a file that holds one JSON object."""

    def parse(fields: Fields) -> NaturalPrediction:
        scores = read_number(fields, "long_answer_score"), read_number(fields, "short_answers_score")
        empty = NaturalPrediction(fields.record["example_id"], NaturalAnswer(), *scores)
        answer = _natural_answer(fields := Fields({**empty.record(), **fields.record}, fields.where))
        read_yes_no(fields, beside=answer.short_answers)
        return empty._replace(answer=answer)

    items = Fields(read_json(path), str(path)).get("predictions", list)
    return by_id([Fields(item, f"{path}: prediction {number}") for number, item in enumerate(items, start=1)], parse)


def write_natural_predictions(path: str | Path, predictions: Iterable[NaturalPrediction]) -> None:
    """Writes the file that Natural Questions' `nq_eval` reads."""
    with atomic_file(path) as file:
        file.write(json.dumps({"predictions": [prediction.record() for prediction in predictions]}).encode() + b"\n")


def _natural_answer(fields: Fields) -> NaturalAnswer:
    spans = (_span(short_answer) for short_answer in fields.objects("short_answers"))
    return NaturalAnswer(_span(part_of(fields, "long_answer")), tuple(filter(None, spans)), read_yes_no(fields))


def _span(fields: Fields) -> Span | None:
    kinds = [kind for kind in ("byte", "token") if f"start_{kind}" in fields or f"end_{kind}" in fields]
    if not kinds:
        raise fields.error(f"no start_byte and end_byte, and no start_token and end_token, in {fields.record!r:.60}")
    offsets = {kind: read_offsets(fields, f"start_{kind}", f"end_{kind}") for kind in kinds}
    return Span(**offsets) if any(offsets.values()) else None
