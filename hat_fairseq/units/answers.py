"""What a model finds in a document for each question: passages, and in each the lines that most probably answer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..data.transcripts import Transcript
from ..inference.rows import Line as JsonLine
from .evidence import Evidence, EvidencePrediction, Unit, passages, raw_text

Seconds = tuple[float | None, float | None]  # of a beginning and an end, None where unknown
OPTIONAL = ("rank", "role", "time", "line_threshold", "closest")  # keys of JSON that are there only with a value


@dataclass(frozen=True)
class Line:
    """A turn or sentence of a passage that most probably answers a question.

    Attributes:
        number: of the turn or sentence, from 0.
        begin, end: its characters in the text of the document.
        probability: how likely it is such a line.
        text, role: what is said, and who says it; None where that is unknown.
        time: None where the document has no times.
    """

    number: int
    begin: int
    end: int
    probability: float
    text: str
    role: str | None = None
    time: Seconds | None = None


@dataclass(frozen=True)
class Passage:
    """Consecutive turns or sentences that answer a question.

    Attributes:
        rank: from 1; None of a passage that is only the closest one.
        probability: the greatest among its turns or sentences.
        first, last: their numbers, from 0.
        begin, end: its characters in the text of the document.
        roles: who speaks, in the order of the first turns.
        lines: at most three turns or sentences that most probably answer, best first; none of a model that was trained
            without lines.
        time: None where the document has no times.
    """

    rank: int | None
    probability: float
    first: int
    last: int
    begin: int
    end: int
    roles: tuple[str, ...]
    text: str
    lines: tuple[Line, ...]
    time: Seconds | None = None


@dataclass(frozen=True)
class Question:
    """What a document has for a question.

    Attributes:
        answered: whether a passage answers it: the model decides, or a threshold that the user has given.
        answer_probability: how likely the document has an answer.
        threshold, probabilities: of passages; a probability for each turn or sentence, None for one that was not read.
        passages: that answer it, best first; none for a question that is not answered.
        closest: of a question that is not answered, the best passage, or the best turn or sentence.
        line_threshold, line_probabilities: as those of passages; None of a model that was trained without lines.
    """

    question: str
    answered: bool
    answer_probability: float
    threshold: float
    probabilities: tuple[float | None, ...]
    passages: tuple[Passage, ...]
    closest: Passage | None = None
    line_threshold: float | None = None
    line_probabilities: tuple[float | None, ...] | None = None

    @property
    def shown(self) -> tuple[Passage, ...]:
        """Returns the passages, or the closest one alone."""
        return self.passages if self.closest is None else (self.closest,)


@dataclass(frozen=True)
class Answers:
    """What a model finds in a document.

    Attributes:
        id: of the document.
        judges: whether the model was trained to say that a document has no answer.
        record, transcript: the document.
        units: its turns or sentences that were read, by number.
    """

    id: str
    questions: tuple[Question, ...]
    judges: bool
    record: Evidence = field(repr=False)
    transcript: Transcript = field(repr=False)
    units: Mapping[int, Unit] = field(repr=False)

    def found(self, prediction: EvidencePrediction, decided: bool) -> Self:
        """Returns them with a prediction; `decided`: by a threshold of the user, whether anything answers."""
        return replace(self, questions=tuple(self._question(each, decided) for each in prediction.questions))

    def lines(self, most: int | None = None) -> list[JsonLine]:
        """Returns a JSON object for each question, with at most so many passages."""
        return [{"id": self.id, **to_json(question, most)} for question in self.questions]

    def line(self, number: int, probability: float | None = None) -> Line:
        """Returns a turn or sentence with what is known of it."""
        unit, roles = self.units[number], self.record.roles
        text, role = self._text[unit.begin : unit.end], None if roles is None else roles[number]
        return Line(number, unit.begin, unit.end, probability or 0.0, text, role, self._time(number, number))

    @cached_property
    def _text(self) -> str:
        return raw_text(self.record)

    def _time(self, first: int, last: int) -> Seconds | None:
        """When the first turn begins, and the last one ends."""
        said = self.transcript.said
        return (said[first].start, said[last].end) if self.transcript.has_times else None

    def _question(self, values: Mapping[str, Any], decided: bool) -> Question:
        of_lines = values.get("line_probabilities") or values["probabilities"]
        answered = bool(values["passages"]) and (decided or values["answered"])
        ranked = [self._passage(each, rank, of_lines) for rank, each in enumerate(values["passages"], start=1)]
        own = {**values, "answered": answered, "passages": tuple(ranked) if answered else ()}
        own |= {key: tuple(values[key]) for key in ("probabilities", "line_probabilities") if key in values}
        return Question(**own, closest=None if answered else self._closest(ranked, values["probabilities"], of_lines))

    def _passage(self, values: Mapping[str, Any], rank: int | None, of_lines: Sequence[float | None]) -> Passage:
        """`of_lines`: probabilities by number."""
        lines = tuple(self.line(number, of_lines[number]) for number in values["lines"])
        known = {**values, "roles": tuple(values["roles"]), "lines": lines}
        return Passage(rank, time=self._time(values["first"], values["last"]), **known)

    def _closest(
        self, ranked: Sequence[Passage], of_passages: Sequence[float | None], of_lines: Sequence[float | None]
    ) -> Passage:
        """The best passage, or without one the best turn or sentence."""
        if ranked:
            return replace(ranked[0], rank=None)
        unit = max(self.units.values(), key=lambda each: of_lines[each.number] or 0)
        known = None if of_lines is of_passages else np.array([of_lines[unit.number] or 0.0])
        (best,) = passages(self.record, [unit], np.array([of_passages[unit.number] or 0.0]), 0.0, lines=known)
        return self._passage(best, None, of_lines)


def to_json(question: Question, most: int | None = None) -> JsonLine:
    """Returns a question without the probabilities of all turns, and with at most so many passages."""
    fields = asdict(question)
    line = {key: fields[key] for key in ("question", "answered", "answer_probability", "threshold", "line_threshold")}
    line |= {"passages": fields["passages"][:most], "passages_in_all": len(question.passages)}
    return _without_none(line | {"closest": fields["closest"]})


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(each) for key, each in value.items() if each is not None or key not in OPTIONAL}
    return [*map(_without_none, value)] if isinstance(value, list | tuple) else value
