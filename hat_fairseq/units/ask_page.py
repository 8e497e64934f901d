"""Writes a transcript and what answers the questions asked about it as one HTML file; see `template.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..analysis.template import fill
from ..data.files import at


@dataclass(frozen=True)
class Asked:
    """What the page shows of a document.

    Attributes:
        document, model: names; `about`: what was read.
        unit: turn, sentence or line.
        judges: whether the model can say that nothing answers.
        texts: of the units; `speakers`, one for each or none; `starts`: their seconds, None where unknown, or none.
        questions: of `units.answers.Question`.
    """

    document: str
    model: str
    about: str
    unit: str
    judges: bool
    texts: Sequence[str]
    speakers: Sequence[str | None]
    starts: Sequence[float | None]
    questions: Sequence[Any]


def ask_page(asked: Asked) -> str:
    """Returns the page; ValueError for numbers that are not finite."""
    data: dict[str, Any] = {name: getattr(asked, name) for name in ("document", "model", "about", "unit", "judges")}
    data |= {"texts": [*asked.texts], "speakers": [*asked.speakers], "starts": [*asked.starts]}
    data["questions"] = [*map(_question, asked.questions)]
    with at(f"document {asked.document}"):
        return fill("ask", data)


def _question(question: Any) -> dict[str, Any]:
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


def _place(passage: Any) -> list[Any]:
    """First and last unit, probability, and the units that are its lines, best first."""
    return [passage.first, passage.last, round(passage.probability, 4), [line.number for line in passage.lines]]
