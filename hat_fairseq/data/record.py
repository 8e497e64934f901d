"""`Record`, which all readers yield: a document with its target, or an example with its labels."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

Text = str | tuple[str, ...]  # running text, still to be split into sentences; or sentences, segments, turns or words


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can represent it: JSON's `\\ud800` alone is no character."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


@dataclass(frozen=True)
class Answer:
    """An answer to a question: `text` stands in the context as given, from its character `start` on."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The character behind it."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class Annotation:
    """The answer of an annotator to a question on a document; empty if the document has no answer."""

    paragraph: int | None = None  # number of the paragraph with the answer, from 0
    spans: tuple[Answer, ...] = ()  # short answers in this paragraph; starts count its characters
    yes_no: str | None = None  # `yes` or `no`, instead of spans


@dataclass(frozen=True)
class Record:
    """A document or an example. Which of the fields it has depends on its kind (see `kinds.py`).

    ValueError for an id or a label that is not usable, other than one or two parts, labels or roles that are not as
    many as elements, or an answer that does not stand where it says.
    """

    id: str  # not empty, without tabs and line breaks
    parts: tuple[Text, ...]  # what the model reads: `(text,)`, `(premise, hypothesis)` or `(question, text)`
    choices: tuple[str, ...] = ()  # continuations of the text, or candidates for the answer; one of them is right
    _: KW_ONLY
    roles: tuple[str, ...] | None = None  # one for each sentence of the last part
    target: tuple[str, ...] | None = None  # the reference, one string for each of its sentences
    label: str | None = None  # of the whole record; with choices the number of the right one, from 0
    labels: tuple[str, ...] | None = None  # one for each element of the only part
    answers: tuple[Answer, ...] | None = None  # empty if the text has no answer, None if that is not known
    annotations: tuple[Annotation, ...] | None = None  # None if they are not known
    meta: Mapping[str, Any] | None = field(default=None, compare=False)  # a JSON object; predictions carry it on
    origin: str | None = field(default=None, compare=False)  # for messages: `mine.jsonl:7`, or lines of both sides

    def __post_init__(self) -> None:
        if not self.id.strip() or any(character in self.id for character in "\t\r\n"):
            raise ValueError(f"the id {self.id!r} is empty or contains a tab or a line break")
        for name in (self.id, self.label or "", *(self.labels or ())):
            if not is_unicode(name):
                raise ValueError(f"the id or label {name!r} has a lone surrogate, which UTF-8 cannot represent")
        if len(self.parts) not in (1, 2):
            raise ValueError(f"{self.name} has {len(self.parts)} parts instead of one or two")
        if self.label == "" or "" in (self.labels or ()):
            raise ValueError(f"{self.name} has an empty label")
        for what, values in (("labels", self.labels), ("roles", self.roles)):
            if values is not None and len(values) != len(self.sentences or ()):
                raise ValueError(
                    f"{self.name} has {len(values)} {what} for {len(self.sentences or ())} sentences, segments or words"
                )
        for answer in self.answers or ():
            if len(self.parts) != 2 or self.text is None:
                raise ValueError(f"{self.name} has answers, but no question with a running text")
            self._check_answer(answer, self.text, "its text")
        for annotation in self.annotations or ():
            self._check_annotation(annotation)

    @property
    def text(self) -> str | None:
        """The last part if it is running text."""
        return self.parts[-1] if isinstance(self.parts[-1], str) else None

    @property
    def sentences(self) -> tuple[str, ...] | None:
        """The elements of the last part if it is divided: sentences, segments, turns or words."""
        return None if isinstance(self.parts[-1], str) else self.parts[-1]

    @property
    def source(self) -> object:
        """The parts and choices of a record, by which records are compared."""
        return self.parts, self.choices

    @property
    def name(self) -> str:
        """For messages: the id, and the origin where it is known."""
        return f"document {self.id!r}" + (f" ({self.origin})" if self.origin else "")

    def texts(self) -> Iterator[tuple[int, Text]]:
        """Number and text of every part; choices are the part behind them."""
        yield from enumerate(self.parts)
        yield from ((len(self.parts), choice) for choice in self.choices)

    def _check_annotation(self, annotation: Annotation) -> None:
        number, paragraphs = annotation.paragraph, self.sentences
        if len(self.parts) != 2 or paragraphs is None:
            raise ValueError(f"{self.name} has annotations, but no question with paragraphs")
        if annotation.yes_no not in (None, "yes", "no") or (annotation.yes_no and annotation.spans):
            raise ValueError(f"{self.name}: an annotation has spans, or yes_no 'yes' or 'no', not {annotation!r:.160}")
        if number is None:
            if annotation.spans or annotation.yes_no:
                raise ValueError(f"{self.name}: an annotation with an answer needs its paragraph")
            return
        if not 0 <= number < len(paragraphs):
            raise ValueError(
                f"{self.name}: an annotation is about paragraph {number}, and there are {len(paragraphs)} paragraphs; "
                "they count from 0"
            )
        for answer in annotation.spans:
            self._check_answer(answer, paragraphs[number], f"its paragraph {number}")

    def _check_answer(self, answer: Answer, context: str, where: str) -> None:
        found = context[max(0, answer.start) : max(0, answer.start) + len(answer.text)]
        if answer.start < 0 or not answer.text.strip() or found != answer.text:
            raise ValueError(
                f"{self.name}: the answer {answer.text!r:.80} does not stand at character {answer.start} of "
                f"{where}, where {found!r:.80} stands; starts count characters from 0"
            )
