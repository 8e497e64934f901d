"""Records, which all readers yield: a dataclass for each kind of data, whose fields are the keys of JSON objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

from hat_fairseq.data.files import is_deeper, is_unicode, json_text
from hat_fairseq.data.text import is_blank

Texts = tuple[str, ...]
Text = str | Texts  # running text, still to be split into sentences; or sentences, segments, turns or words
DEEPEST_META = 100  # levels; others that read the predictions have limits, too
Repairs = Mapping[str, Callable[[Any], Any]]  # by field, what makes values of JSON into its values


def as_label(label: Any) -> Any:
    """Returns a label, which JSON may have as a number."""
    return str(label) if type(label) is int else label


def as_labels(labels: Any) -> Any:
    """Returns labels, each of which JSON may have as a number."""
    return list(map(as_label, labels)) if isinstance(labels, list) else labels


def as_sentences(text: Any) -> Any:
    """Returns sentences, which JSON may have as a string with one on each line."""
    return text.split("\n") if isinstance(text, str) else text


def as_meta(meta: Any) -> Any:
    """Returns what predictions carry on; ValueError for what JSON in UTF-8 does not have."""
    try:
        is_text = not is_deeper(meta, DEEPEST_META) and is_unicode(json_text(meta))
    except TypeError as error:  # of a table
        raise ValueError(f"meta has a value that JSON does not have ({error})") from error
    if not is_text:
        raise ValueError(f"meta has a lone surrogate, or more than {DEEPEST_META} levels")
    return meta


def shown_label(label: str) -> str:
    """Returns a label for a terminal: as it is, or quoted if it would not be seen as it is."""
    return label if label.isprintable() and label == label.strip() else repr(label)


@dataclass(frozen=True)
class Turn:
    """What somebody says in a dialogue."""

    role: str | None = field(default=None, kw_only=True)
    speaker: str | None = field(default=None, kw_only=True)  # instead of a role
    text: str


def texts_of(turns: Sequence[Turn] | None) -> Texts | None:
    """Returns the texts of turns."""
    return None if turns is None else tuple(turn.text for turn in turns)


def roles_of(turns: Sequence[Turn] | None) -> tuple[str | None, ...] | None:
    """Returns the role of each turn, None for one without; None if no turn has one."""
    roles = tuple(turn.speaker if turn.role is None else turn.role for turn in turns or ())
    return None if all(role is None for role in roles) else roles


class OfTurns:
    """A record whose text may be turns or sentences."""

    turns: tuple[Turn, ...] | None
    sentences: Texts | None

    @cached_property
    def elements(self) -> Texts | None:
        """Returns the sentences, or the texts of the turns."""
        return self.sentences if self.turns is None else texts_of(self.turns)

    @cached_property
    def roles(self) -> Any:
        """Returns the role of each turn, None for one without; None if no turn has one."""
        return roles_of(self.turns)


@dataclass(frozen=True)
class Answer:
    """An answer to a question: `text` stands in the context as given, from its character `start` on.

    One that shows nothing is none: it is counted as not found.
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def check(self, context: str, where: str) -> None:
        """Raises ValueError if it does not stand in the context, which `where` names."""
        begin = max(0, self.start)
        if is_blank(self.text):
            return
        if self.start < 0 or not context.startswith(self.text, begin):
            raise ValueError(
                f"{where}: the answer {self.text!r:.80} does not stand at character {self.start}, where "
                f"{context[begin : begin + len(self.text)]!r:.80} stands; starts count characters from 0"
            )


@dataclass(frozen=True)
class Annotation:
    """The answer of an annotator to a question on a document; empty if the document has no answer."""

    paragraph: int | None = None  # number of the paragraph with the answer, from 0
    yes_no: str | None = field(default=None, kw_only=True)  # `yes` or `no`, instead of spans
    spans: tuple[Answer, ...] = ()  # short answers in this paragraph; starts count its characters

    def __post_init__(self) -> None:
        if self.yes_no not in (None, "yes", "no") or (self.yes_no and self.spans):
            both = ", and not beside spans" if self.spans else ""
            raise ValueError(f"yes_no of an annotation is 'yes' or 'no'{both}: {self.yes_no!r:.80}")
        if self.paragraph is None and (self.spans or self.yes_no):
            raise ValueError("an annotation with an answer needs its paragraph")


@dataclass(frozen=True)
class Record:
    """A document or an example: what all kinds have in common. A kind adds the fields of its texts and its gold label.

    ValueError for an unfit id or label, or none or several forms of the text.
    """

    reads: ClassVar[Texts]  # the fields that the model reads, in this order
    one_of: ClassVar[Texts]  # those with the forms that the text may have
    gold: ClassVar[str | None] = None  # the field with the gold target or label; None if there is none
    repairs: ClassVar[Repairs] = {"meta": as_meta}  # of the fields that JSON may have in another form

    id: str  # not empty, without tabs and line breaks
    _: KW_ONLY
    meta: Mapping[str, Any] | None = field(default=None, compare=False)  # predictions carry it on
    # For messages: `mine.jsonl:7`, or lines of both sides.
    origin: str | None = field(default=None, compare=False, repr=False)

    def __init_subclass__(
        cls, reads: Texts, one_of: Texts = (), gold: str | None = None, repairs: Repairs = MappingProxyType({})
    ) -> None:
        cls.reads, cls.one_of, cls.gold, cls.repairs = reads, one_of, gold, {**cls.repairs, **repairs}

    def __post_init__(self) -> None:
        label: Any = getattr(self, "label", None)
        labels = (label,) if isinstance(label, str) else getattr(self, "labels", None) or ()  # texts of the user
        if not all(map(is_unicode, (self.id, *labels))):
            raise ValueError(f"{self.place}: its id or label has a lone surrogate, which UTF-8 cannot represent")
        if is_blank(self.id) or any(character in self.id for character in "\t\r\n"):
            raise ValueError(f"{self.place}: its id is empty or contains a tab or a line break")
        if any(map(is_blank, labels)):
            raise ValueError(f"{self.place} has an empty label")
        forms = [name for name in self.one_of if getattr(self, name) is not None]
        if self.one_of and len(forms) != 1:
            present = " and ".join(forms) or "none"
            raise ValueError(f"{self.place}: give exactly one of {', '.join(self.one_of)}, not {present}")

    @property
    def parts(self) -> tuple[Text, ...]:
        """Returns what the model reads: `(text,)`, `(premise, hypothesis)` or `(question, text)`."""
        return tuple(value for name in self.reads if (value := getattr(self, name)) is not None)

    @property
    def name(self) -> str:
        """Returns for messages the id, and the origin where it is known."""
        return f"document {self.id!r}" + (f" ({self.origin})" if self.origin else "")

    @property
    def place(self) -> str:
        """Returns what opens the message about a record that cannot be: its origin, if that is known, and its id."""
        return f"{self.origin}: document {self.id!r}" if self.origin else self.name

    def texts(self) -> tuple[Text, ...]:
        """Returns all texts that the model reads, by which records are compared; here the parts."""
        return self.parts

    @property
    def gold_value(self) -> Any:
        """Returns its gold target or label; None if it has none."""
        return None if self.gold is None else getattr(self, self.gold)

    def without_gold(self) -> Self:
        """Returns the same record without its gold target or label."""
        without: dict[str, Any] = {self.gold: None} if self.gold else {}
        return replace(self, **without)

    @property
    def elements(self) -> Texts | None:
        """Returns the elements of the last part if it is divided: sentences, segments, turns or words."""
        return None if isinstance(self.parts[-1], str) else self.parts[-1]
