"""Writes a transcript and what answers the questions asked about it as one HTML file; see `template.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..data.files import at
from .template import fill

if TYPE_CHECKING:
    from ..inference.answers import Passage, Question


@dataclass(frozen=True)
class Asked:
    """What the page shows of a document.

    Attributes:
        document, model: names; `about`: what was read.
        unit: turn, sentence or line.
        judges: whether the model can say that nothing answers.
        texts: of the units; `speakers`, one for each or none; `starts`: their seconds, None where unknown, or none.
    """

    document: str
    model: str
    about: str
    unit: str
    judges: bool
    texts: Sequence[str]
    speakers: Sequence[str | None]
    starts: Sequence[float | None]
    questions: Sequence[Question]


def ask_page(asked: Asked) -> str:
    """Returns the page; ValueError for numbers that are not finite."""
    data: dict[str, Any] = {name: getattr(asked, name) for name in ("document", "model", "about", "unit", "judges")}
    data |= {"texts": [*asked.texts], "speakers": [*asked.speakers], "starts": [*asked.starts]}
    data["questions"] = [*map(_question, asked.questions)]
    with at(f"document {asked.document}"):
        return fill("ask", data)


def _question(question: Question) -> dict[str, Any]:
    """A question, with the probabilities of lines if the model was trained with lines, else those of passages."""
    has_lines = question.line_probabilities is not None and question.line_threshold is not None
    probabilities = question.line_probabilities if has_lines else question.probabilities
    return {
        "question": question.question,
        "answered": question.answered,
        "threshold": question.line_threshold if has_lines else question.threshold,
        "ofLines": has_lines,
        "probabilities": [None if value is None else round(value, 4) for value in probabilities or ()],
        "passages": [*map(_place, question.shown)],
    }


def _place(passage: Passage) -> list[Any]:
    """First and last unit, probability, and the units that are its lines, best first."""
    return [passage.first, passage.last, round(passage.probability, 4), [line.number for line in passage.lines]]
