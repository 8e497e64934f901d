"""Writes a transcript and what answers the questions asked about it as one HTML file; see `template.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..data.files import at
from .template import fill


@dataclass(frozen=True)
class Asked:
    """What the page shows of a document.

    Attributes:
        document, model: names; `about`: what was read.
        unit: turn, sentence or line.
        texts: of the units; `speakers`, one for each or none; `starts`: their seconds, None where unknown, or none.
        questions: each with `question`, `probabilities` by unit, `passages`, best first, with `first`, `last`,
            `peak` (numbers of units) and `probability`, and `best`, such a passage, if there are none.
    """

    document: str
    model: str
    about: str
    unit: str
    threshold: float
    texts: Sequence[str]
    speakers: Sequence[str | None]
    starts: Sequence[float | None]
    questions: Sequence[dict[str, Any]]


def ask_page(asked: Asked) -> str:
    """Returns the page; ValueError for numbers that are not finite."""
    data: dict[str, Any] = {name: getattr(asked, name) for name in ("document", "model", "about", "unit", "threshold")}
    data |= {"texts": [*asked.texts], "speakers": [*asked.speakers], "starts": [*asked.starts]}
    data["questions"] = [
        {
            "question": each["question"],
            "probabilities": [None if value is None else round(value, 4) for value in each["probabilities"]],
            "passages": [_place(passage) for passage in each["passages"]],
            "best": None if each["passages"] else _place(each["best"]),
        }
        for each in asked.questions
    ]
    with at(f"document {asked.document}"):
        return fill("ask", data)


def _place(passage: dict[str, Any]) -> list[Any]:
    """First and last unit, probability, and the unit that has it."""
    return [passage["first"], passage["last"], round(passage["probability"], 4), passage["peak"]]
