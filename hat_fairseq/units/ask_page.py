"""Writes a transcript and what answers the questions asked about it as one HTML file; see `template.py`."""

from typing import Any

from ..analysis.template import fill
from ..data.files import at
from .answers import Answers, Passage, Question


def ask_page(answers: Answers, model: str) -> str:
    """Returns the page; `model`: its name. ValueError for numbers that are not finite."""
    transcript = answers.transcript
    said = transcript.said
    data: dict[str, Any] = {
        "document": answers.id,
        "model": model,
        "about": transcript.describe(),
        "unit": transcript.unit,
        "judges": answers.judges,
        "texts": [each.text for each in said] or [answers.line(number).text for number in answers.units],
        "speakers": [each.speaker for each in said] if transcript.speakers else [],
        "starts": [each.start for each in said] if transcript.has_times else [],
        "questions": [*map(_question, answers.questions)],
    }
    with at(f"document {answers.id}"):
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
