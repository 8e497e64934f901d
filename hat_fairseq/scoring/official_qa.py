"""The common parts of the official files of Natural Questions and TyDi QA (primary tasks).

A question has a long and a short answer; TyDi QA calls them passage and minimal answer. Offsets are half-open; -1 in a
file is None here. Annotations are JSON lines with what is scored, other keys are ignored, or the records that
`hat preprocess` made of them, which keep what is scored in `meta`. In predictions an answer and
`yes_no_answer` may be missing, which means none; the scores may not.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from hat_fairseq.data.files import Fields, read_json_lines

Offsets = tuple[int, int] | None
YES_NO = ("yes", "no", "none")

T = TypeVar("T")


def question_lines(*paths: str | Path) -> Iterable[Fields]:
    """The lines of a release, or what a reader kept of them in `meta` (in `text/SPLIT.jsonl`)."""
    for path in paths:
        for number, record in read_json_lines(path):
            meta = record["meta"] if isinstance(record.get("meta"), dict) else {}
            yield Fields(meta.get("natural_questions", meta.get("tydi_qa", record)), f"{path}:{number}")


def by_id(questions: Iterable[Fields], parse: Callable[[Fields], T]) -> dict[int, T]:
    """The result of `parse` for each question, by its number."""
    found: dict[int, T] = {}
    for fields in questions:
        identifier = fields.get("example_id", int)
        if identifier in found:
            raise fields.error(f"the example_id {identifier} for the second time")
        found[identifier] = parse(fields)
    return found


def read_annotations(fields: Fields, parse: Callable[[Fields], T]) -> tuple[T, ...]:
    """The annotations of a question; ValueError, as from all functions here, if there are none."""
    if annotations := tuple(map(parse, fields.objects("annotations"))):
        return annotations
    raise fields.error("no annotations: answers can be scored only where the gold answers are known")


def part_of(fields: Fields, key: str) -> Fields:
    """The object under a key, with its place for messages."""
    return Fields(fields.get(key, dict), f"{fields.where}: {key}")


def read_offsets(fields: Fields, start: str, end: str, empty: bool = False) -> Offsets:
    """Two offsets, None for negative ones; `tydi_eval.py` lets them be equal, which overlaps with nothing."""
    first, last = fields.get(start, int), fields.get(end, int)
    if (first < 0) != (last < 0):
        raise fields.error(f"{start} is {first} and {end} is {last}: both are negative (no answer), or neither")
    if first >= 0 and (first > last or (first == last and not empty)):
        raise fields.error(f"{start} {first} is not before {end} {last}")
    return (first, last) if first >= 0 else None


def read_yes_no(fields: Fields, beside: object = None) -> str:
    """The answer in lower case; in a prediction there may be no answer `beside` a yes or no."""
    answer = fields.text("yes_no_answer").lower()
    if answer not in YES_NO:
        raise fields.error(f"yes_no_answer must be YES, NO or NONE, not {answer!r:.60}")
    if answer != "none" and beside:
        raise fields.error(f"yes_no_answer is {answer.upper()} beside an answer in the text: give one of the two")
    return answer


def read_number(fields: Fields, key: str) -> float:
    """The number under a key."""
    value = fields.record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fields.error(f"{key} must be a number, not {value!r:.60}")
    return float(value)
