"""The records of each kind of data; see `record.Record`."""

from dataclasses import dataclass, field, replace
from typing import Any

from hat_fairseq.data.record import Annotation, Answer, Label, Record, Sentences, Text, Texts, Turn


@dataclass(frozen=True)
class Document(Record, reads=("question", "text", "sentences"), one_of=("text", "turns", "sentences"), gold="target"):
    """A document with its target: a summary, or a translation segment by segment."""

    question: str | None = None  # it becomes the first sentence
    turns: tuple[Turn, ...] | None = None
    text: str | None = None
    sentences: Texts | None = None  # the texts of the turns where there are turns
    target: Sentences | None = None
    other_references: tuple[Texts, ...] = ()  # besides the target; in JSON they follow it in one list
    summary: Sentences | None = None  # another name for the target when it is read
    roles: Texts | None = field(default=None, init=False)  # one for each turn

    def __post_init__(self) -> None:
        if self.summary is not None:
            if self.target is not None:
                raise ValueError(f"{self.name}: target and summary are two names for the same thing; give one of them")
            self._set(target=self.summary, summary=None)
        texts = None if self.turns is None else tuple(turn.text for turn in self.turns)
        if texts == self.sentences:  # of a record with these turns
            self._set(sentences=None)
        super().__post_init__()
        if self.turns is not None:
            self._set(sentences=texts, roles=self._roles(self.turns))

    @property
    def references(self) -> tuple[Texts, ...]:
        """The target, which models are trained on, and the other references."""
        return () if self.target is None else (self.target, *self.other_references)

    def with_sentences(self, sentences: Texts, roles: Texts | None, target: Texts | None) -> "Document":
        """The document with other sentences instead of its question and text, and another target."""
        turns = tuple(Turn(text, role=role) for text, role in zip(sentences, roles or (), strict=bool(roles)))
        return replace(self, question=None, text=None, sentences=sentences, turns=turns or None, target=target)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _roles(self, turns: tuple[Turn, ...]) -> Texts | None:
        roles = [turn.speaker if turn.role is None else turn.role for turn in turns]
        known = tuple(role for role in roles if role is not None)
        if known and None in roles:
            raise ValueError(f"{self.name}: turn {roles.index(None) + 1} has neither role nor speaker, but others have")
        return known or None


@dataclass(frozen=True)
class PretrainingText(Record, reads=("text", "segments"), one_of=("text", "segments")):
    """A text to pre-train on. In a file its id may be missing."""

    text: str | None = None
    segments: Texts | None = None


@dataclass(frozen=True)
class LabelledText(Record, reads=("text", "segments", "second"), one_of=("text", "segments"), gold="label"):
    """A text, or a pair of texts, with a label."""

    second: Text | None = None
    text: str | None = None
    segments: Texts | None = None
    label: Label | None = None


@dataclass(frozen=True)
class Choice(Record, reads=("text", "segments"), one_of=("text", "segments"), gold="label"):
    """A text with several continuations, one of which is right."""

    text: str | None = None
    segments: Texts | None = None
    question: str | None = None  # becomes the beginning of each choice
    choices: Texts = ()
    label: int | None = None  # number of the right one, from 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if question := (self.question or "").strip():
            object.__setattr__(self, "choices", tuple(f"{question} {choice}" for choice in self.choices))
        object.__setattr__(self, "question", None)
        _check_choices(self, "choices")


@dataclass(frozen=True)
class Candidates(Record, reads=("question", "text", "segments"), one_of=("text", "segments"), gold="label"):
    """A question on a text with several candidates for its answer, one of which is right."""

    question: str
    text: str | None = None
    segments: Texts | None = None
    candidates: Texts = ()
    label: int | None = None  # number of the right one, from 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choices(self, "candidates")

    @property
    def choices(self) -> Texts:
        return self.candidates


@dataclass(frozen=True)
class LabelledSegments(Record, reads=("segments",), gold="labels"):
    """Segments with a label each."""

    segments: Texts
    labels: tuple[Label, ...] | None = None


@dataclass(frozen=True)
class LabelledWords(Record, reads=("words",), gold="labels"):
    """Words with a label each."""

    words: Texts
    labels: tuple[Label, ...] | None = None


@dataclass(frozen=True)
class Question(Record, reads=("question", "text"), gold="answers"):
    """A question with answers that are spans of a text; ValueError if one does not stand where it says."""

    question: str
    text: str = field()  # without a default, unlike the property that it overrides
    answers: tuple[Answer, ...] | None = None  # empty if the text has no answer, None if that is not known

    def __post_init__(self) -> None:
        super().__post_init__()
        for answer in self.answers or ():
            answer.check(self.text, self.name)


@dataclass(frozen=True)
class DocumentQuestion(Record, reads=("question", "paragraphs"), gold="annotations"):
    """A question on the paragraphs of a document with the answers of annotators; ValueError as `Question`."""

    question: str
    paragraphs: Texts
    annotations: tuple[Annotation, ...] | None = None  # None if they are not known

    def __post_init__(self) -> None:
        super().__post_init__()
        for annotation in self.annotations or ():
            number, count = annotation.paragraph, len(self.paragraphs)
            if number is None:
                continue
            if number not in range(count):
                raise ValueError(f"{self.name}: an annotation has paragraph {number}, not one from 0 to {count - 1}")
            for answer in annotation.spans:
                answer.check(self.paragraphs[number], f"{self.name}, paragraph {number}")


@dataclass(frozen=True)
class SymbolSequence(Record, reads=("tokens",), gold="label"):
    """A sequence of symbols with a label."""

    tokens: Texts
    label: Label | None = None


@dataclass(frozen=True)
class ByteSequence(Record, reads=("text", "pixels"), one_of=("text", "pixels"), gold="label"):
    """A text as bytes, or an image as pixels from 0 to 255, with a label."""

    text: str | None = None
    pixels: tuple[int, ...] | None = None
    label: Label | None = None

    @property
    def parts(self) -> tuple[Text, ...]:
        """The text, or the pixels as symbols."""
        return (tuple(map(str, self.pixels or ())) if self.text is None else self.text,)


@dataclass(frozen=True)
class BytePair(Record, reads=("text", "second"), gold="label"):
    """A pair of texts as bytes, which the model encodes separately, with a label."""

    second: str
    text: str = field()  # as in `Question`
    label: Label | None = None


def _check_choices(record: Record, name: str) -> None:
    if (count := len(record.choices)) < 2:
        raise ValueError(f"{record.name} has {count} {name}; at least two are needed")
    if record.label is not None and record.label not in range(count):
        raise ValueError(f"{record.name} has the label {record.label}; the {name} have the numbers 0 to {count - 1}")
