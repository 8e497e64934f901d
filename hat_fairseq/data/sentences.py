"""From the texts of a record to sentences of words, as they go into the BPE: each text is cleaned and divided once.

`Divider` has the steps that kinds of data share; `Prepared` is their result for a record.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from hat_fairseq.data.files import at
from hat_fairseq.data.options import Settings
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.text import (
    EmptyDocumentError,
    escape_control_tokens,
    is_blank,
    normalise,
    split_lines,
    split_sentences,
)
from hat_fairseq.data.word_tokenizer import word_tokenizer_of

NOTHING = "no sentence with text in it"


class Sentence(NamedTuple):
    """A sentence, segment or word."""

    text: str  # normalised
    words: str  # the same with escaped control tokens and words separated, as it goes into the BPE


class Divided(NamedTuple):
    """A text in sentences, segments or words, none of them empty."""

    sentences: list[Sentence]
    may_be_whole: bool = False  # a text, such as running text, of which one long sentence is counted as not divided
    letters: Sequence[Any] | None = None  # of each character but white space its place in the raw text, if asked for

    def to_json(self) -> list[Any]:
        """Returns what `from_json` reads; the words are left out where they are the texts."""
        texts, words = [each.text for each in self.sentences], [each.words for each in self.sentences]
        return [self.may_be_whole, texts, None if texts == words else words]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """Returns what was divided, without letters."""
        may_be_whole, texts, words = value
        return cls(list(map(Sentence, texts, words or texts)), may_be_whole)


@dataclass(frozen=True)
class Prepared:
    """A record whose texts are divided.

    Attributes:
        record: as `text/SPLIT.jsonl` has it.
        texts: what the model reads, in the order in which the kind of data encodes it.
        target: the sentences or segments of the target; None without one.
    """

    record: Record
    texts: list[Divided]
    target: Divided | None = None

    def without_gold(self) -> "Prepared":
        """Returns the same without target, labels and answers."""
        return Prepared(self.record.without_gold(), self.texts)

    def words(self) -> Iterable[str]:
        """Lists what goes into the BPE."""
        texts = self.texts if self.target is None else [*self.texts, self.target]
        return (sentence.words for text in texts for sentence in text.sentences)


@dataclass
class Divider:
    """Cleans and divides the texts of records; what a record is, kinds of data know."""

    settings: Settings
    counts: Counter[str] = field(default_factory=Counter)  # takes everything replaced or dropped

    def sentences(self, record: Record, text: Text, split: bool = True, element: str | None = None) -> Divided:
        """Returns the sentences, segments or words of a text.

        `split`: running text is split by the settings' splitter, otherwise it is one sentence. `element`: the name of
        an element that has a label. EmptyDocumentError if nothing is left, or such an element is empty.
        """
        check_visible(record, text, element)
        if split and isinstance(text, str):
            way_out = "; or `hat preprocess --segments none`" if self.settings.splitter == "given" else ""
            clean = split_text(record, text, self.settings, self.counts, way_out)
            return Divided(self.words(clean, "source"), may_be_whole=True)
        clean = [normalise(each, self.counts) for each in ([text] if isinstance(text, str) else text)]
        self.counts["sentences_empty"] += clean.count("")
        return Divided(self.words(filter(None, clean), "source"))

    def text(self, record: Record, text: Text) -> Divided:
        """Divides a text that may be long."""
        return self.sentences(record, text, not self.settings.whole)

    def short_text(self, record: Record, text: Text) -> Divided:
        """Divides a question, a choice or the like, which stays whole with `--splitter given`."""
        return self.sentences(record, text, not self.settings.whole and self.settings.splitter != "given")

    def one_segment(self, record: Record, text: Text) -> Divided:
        """Divides a short text that becomes one segment."""
        return self.sentences(record, text, self.settings.splitter != "given")

    def words(self, clean: Iterable[str], side: str) -> list[Sentence]:
        """Separates the words of normalised sentences of the source or the target."""
        separate = word_tokenizer_of(self.settings, side).tokenize
        return [Sentence(text, separate(escape_control_tokens(text, self.counts))) for text in clean]


def check_visible(record: Record, text: Text, element: str | None = None, part: str = "") -> None:
    """Raises EmptyDocumentError for a text that shows nothing, or, if elements have a name, an element that does not.

    `part`: what the text is called, if not as the field of the record.
    """
    blank = list(map(is_blank, [text] if isinstance(text, str) else text))
    if element and any(blank):
        raise EmptyDocumentError(f"{record.name}: its {element} {blank.index(True) + 1} is empty")
    if all(blank):
        fields = [f"field {name!r}" for name, value in vars(record).items() if value is text]
        raise EmptyDocumentError(f"{record.name} has an empty {part or next(iter(fields), 'part')}: {NOTHING}")


def split_text(record: Record, text: str, settings: Settings, counts: Counter[str], way_out: str = "") -> list[str]:
    """Returns the sentences of running text, normalised; ValueError as of `split_sentences`.

    Line breaks end sentences as the settings say, and these are counted; the others become spaces.
    """
    pieces = list(filter(None, (normalise(piece, counts) for piece in split_lines(text, settings.line_breaks))))
    language = settings.source_language
    counts["line_breaks_ending_sentences"] += max(0, len(pieces) - 1)
    with at(record.name, way_out):
        return [each for piece in pieces for each in split_sentences(piece, settings.splitter, language)]
