"""Annotations and predictions of TyDi QA (primary tasks) in the format of its release; see also `official_qa.py`.

Offsets are in bytes of the UTF-8 plain text. Annotations and predictions are JSON lines.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hat_fairseq.data.files import Fields
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


class TydiAnswer(NamedTuple):
    """An annotator's or a model's answer to a question of TyDi QA."""

    passage: int | None = None  # index into `passage_answer_candidates`
    minimal: Offsets = None
    yes_no: str = "none"


class TydiQuestion(NamedTuple):
    """The language and the annotations of a question of TyDi QA."""

    language: str
    annotations: tuple[TydiAnswer, ...]


class TydiPrediction(NamedTuple):
    """A model's answer to a question of TyDi QA; a higher score means a surer answer."""

    example_id: int
    language: str
    answer: TydiAnswer
    passage_score: float
    minimal_score: float

    def record(self) -> dict[str, Any]:
        """The prediction as an object on a line."""
        start, end = self.answer.minimal or (-1, -1)
        return {
            "example_id": self.example_id,
            "language": self.language,
            "passage_answer_index": -1 if self.answer.passage is None else self.answer.passage,
            "passage_answer_score": self.passage_score,
            "minimal_answer": {"start_byte_offset": start, "end_byte_offset": end},
            "minimal_answer_score": self.minimal_score,
            "yes_no_answer": self.answer.yes_no.upper(),
        }


def read_tydi_annotations(paths: Sequence[str | Path]) -> dict[int, TydiQuestion]:
    """Language and annotations of each question in the parts of a release."""

    def parse(fields: Fields) -> TydiAnswer:
        passage = part_of(fields, "passage_answer").get("candidate_index", int)
        return _tydi_answer(fields, passage, ("plaintext_start_byte", "plaintext_end_byte"))

    return by_id(
        question_lines(*paths), lambda fields: TydiQuestion(fields.text("language"), read_annotations(fields, parse))
    )


def read_tydi_predictions(path: str | Path) -> dict[int, TydiPrediction]:
    """The prediction for each question in a file of JSON lines."""

    def parse(fields: Fields) -> TydiPrediction:
        scores = read_number(fields, "passage_answer_score"), read_number(fields, "minimal_answer_score")
        empty = TydiPrediction(fields.record["example_id"], fields.text("language"), TydiAnswer(), *scores)
        fields = Fields({**empty.record(), **fields.record}, fields.where)
        passage = fields.get("passage_answer_index", int)
        answer = _tydi_answer(fields, passage, ("start_byte_offset", "end_byte_offset"))
        read_yes_no(fields, beside=answer.minimal)
        return empty._replace(answer=answer)

    return by_id(question_lines(path), parse)


def write_tydi_predictions(path: str | Path, predictions: Iterable[TydiPrediction]) -> None:
    """Writes the file that TyDi QA's `tydi_eval.py` reads."""
    with atomic_file(path) as file:
        file.writelines(json.dumps(prediction.record()).encode() + b"\n" for prediction in predictions)


def _tydi_answer(fields: Fields, passage: int, keys: tuple[str, str]) -> TydiAnswer:
    minimal = read_offsets(part_of(fields, "minimal_answer"), *keys, empty=True)
    return TydiAnswer(passage if passage >= 0 else None, minimal, read_yes_no(fields))
