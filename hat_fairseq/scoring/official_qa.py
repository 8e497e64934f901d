"""Annotations and predictions of Natural Questions and TyDi QA (primary tasks) in the formats of their releases.

A question has a long and a short answer; TyDi QA calls them passage and minimal answer. Offsets are half-open; -1 in a
file is None here. Annotations are JSON lines with what is scored, other keys are ignored, or the records that
`hat preprocess` made of them, which keep what is scored in `meta`. In predictions an answer and
`yes_no_answer` may be missing, which means none; the scores may not.

- Natural Questions: original annotations (offsets in bytes of the HTML and in tokens) or simplified ones (in tokens).
  Predictions are one JSON object, `{"predictions": [...]}`, with either kind of offsets or both.
- TyDi QA: offsets in bytes of the UTF-8 plain text. Predictions are JSON lines.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hat_fairseq.data.files import Fields, read_json, read_json_lines
from hat_fairseq.data.outputs import atomic_file

Offsets = tuple[int, int] | None
YES_NO = ("yes", "no", "none")

T = TypeVar("T")


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


class TydiAnswer(NamedTuple):
    """An annotator's or a model's answer to a question of TyDi QA."""

    passage: int | None = None  # index into `passage_answer_candidates`
    minimal: Offsets = None
    yes_no: str = "none"


class TydiQuestion(NamedTuple):
    """The language and the annotations of a question of TyDi QA."""

    language: str
    annotations: tuple[TydiAnswer, ...]


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


def read_natural_annotations(paths: Sequence[str | Path]) -> dict[int, tuple[NaturalAnswer, ...]]:
    """The annotations of each question in the parts of a release; ValueError, as all readers here, with the place."""
    return _by_id(_lines(*paths), lambda fields: _annotations(fields, _natural_answer))


def read_natural_predictions(path: str | Path) -> dict[int, NaturalPrediction]:
    """The prediction for each question in a file that holds one JSON object."""

    def parse(fields: Fields) -> NaturalPrediction:
        scores = _number(fields, "long_answer_score"), _number(fields, "short_answers_score")
        empty = NaturalPrediction(fields.record["example_id"], NaturalAnswer(), *scores)
        answer = _natural_answer(fields := Fields({**empty.record(), **fields.record}, fields.where))
        _yes_no(fields, beside=answer.short_answers)
        return empty._replace(answer=answer)

    items = Fields(read_json(path), str(path)).get("predictions", list)
    return _by_id([Fields(item, f"{path}: prediction {number}") for number, item in enumerate(items, start=1)], parse)


def read_tydi_annotations(paths: Sequence[str | Path]) -> dict[int, TydiQuestion]:
    """Language and annotations of each question in the parts of a release."""

    def parse(fields: Fields) -> TydiAnswer:
        passage = _part(fields, "passage_answer").get("candidate_index", int)
        return _tydi_answer(fields, passage, ("plaintext_start_byte", "plaintext_end_byte"))

    return _by_id(_lines(*paths), lambda fields: TydiQuestion(fields.text("language"), _annotations(fields, parse)))


def read_tydi_predictions(path: str | Path) -> dict[int, TydiPrediction]:
    """The prediction for each question in a file of JSON lines."""

    def parse(fields: Fields) -> TydiPrediction:
        scores = _number(fields, "passage_answer_score"), _number(fields, "minimal_answer_score")
        empty = TydiPrediction(fields.record["example_id"], fields.text("language"), TydiAnswer(), *scores)
        fields = Fields({**empty.record(), **fields.record}, fields.where)
        passage = fields.get("passage_answer_index", int)
        answer = _tydi_answer(fields, passage, ("start_byte_offset", "end_byte_offset"))
        _yes_no(fields, beside=answer.minimal)
        return empty._replace(answer=answer)

    return _by_id(_lines(path), parse)


def write_natural_predictions(path: str | Path, predictions: Iterable[NaturalPrediction]) -> None:
    """Writes the file that Natural Questions' `nq_eval` reads."""
    with atomic_file(path) as file:
        file.write(json.dumps({"predictions": [prediction.record() for prediction in predictions]}).encode() + b"\n")


def write_tydi_predictions(path: str | Path, predictions: Iterable[TydiPrediction]) -> None:
    """Writes the file that TyDi QA's `tydi_eval.py` reads."""
    with atomic_file(path) as file:
        file.writelines(json.dumps(prediction.record()).encode() + b"\n" for prediction in predictions)


def _lines(*paths: str | Path) -> Iterable[Fields]:
    """The lines of a release, or what a reader kept of them in `meta` (in `text/SPLIT.jsonl`)."""
    for path in paths:
        for number, record in read_json_lines(path):
            meta = record["meta"] if isinstance(record.get("meta"), dict) else {}
            yield Fields(meta.get("natural_questions", meta.get("tydi_qa", record)), f"{path}:{number}")


def _by_id(questions: Iterable[Fields], parse: Callable[[Fields], T]) -> dict[int, T]:
    """The result of `parse` for each question, by its number."""
    found: dict[int, T] = {}
    for fields in questions:
        identifier = fields.get("example_id", int)
        if identifier in found:
            raise fields.error(f"the example_id {identifier} for the second time")
        found[identifier] = parse(fields)
    return found


def _annotations(fields: Fields, parse: Callable[[Fields], T]) -> tuple[T, ...]:
    if annotations := tuple(map(parse, fields.objects("annotations"))):
        return annotations
    raise fields.error("no annotations: answers can be scored only where the gold answers are known")


def _natural_answer(fields: Fields) -> NaturalAnswer:
    spans = (_span(short_answer) for short_answer in fields.objects("short_answers"))
    return NaturalAnswer(_span(_part(fields, "long_answer")), tuple(filter(None, spans)), _yes_no(fields))


def _tydi_answer(fields: Fields, passage: int, keys: tuple[str, str]) -> TydiAnswer:
    minimal = _offsets(_part(fields, "minimal_answer"), *keys, empty=True)
    return TydiAnswer(passage if passage >= 0 else None, minimal, _yes_no(fields))


def _part(fields: Fields, key: str) -> Fields:
    return Fields(fields.get(key, dict), f"{fields.where}: {key}")


def _span(fields: Fields) -> Span | None:
    kinds = [kind for kind in ("byte", "token") if f"start_{kind}" in fields or f"end_{kind}" in fields]
    if not kinds:
        raise fields.error(f"no start_byte and end_byte, and no start_token and end_token, in {fields.record!r:.60}")
    offsets = {kind: _offsets(fields, f"start_{kind}", f"end_{kind}") for kind in kinds}
    return Span(**offsets) if any(offsets.values()) else None


def _offsets(fields: Fields, start: str, end: str, empty: bool = False) -> Offsets:
    """Two offsets, None for negative ones; `tydi_eval.py` lets them be equal, which overlaps with nothing."""
    first, last = fields.get(start, int), fields.get(end, int)
    if (first < 0) != (last < 0):
        raise fields.error(f"{start} is {first} and {end} is {last}: both are negative (no answer), or neither")
    if first >= 0 and (first > last or (first == last and not empty)):
        raise fields.error(f"{start} {first} is not before {end} {last}")
    return (first, last) if first >= 0 else None


def _yes_no(fields: Fields, beside: object = None) -> str:
    """The answer in lower case; in a prediction there may be no answer `beside` a yes or no."""
    answer = fields.text("yes_no_answer").lower()
    if answer not in YES_NO:
        raise fields.error(f"yes_no_answer must be YES, NO or NONE, not {answer!r:.60}")
    if answer != "none" and beside:
        raise fields.error(f"yes_no_answer is {answer.upper()} beside an answer in the text: give one of the two")
    return answer


def _number(fields: Fields, key: str) -> float:
    value = fields.record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fields.error(f"{key} must be a number, not {value!r:.60}")
    return float(value)
