"""Where the tokens of a row stand in the texts as they were given, and `<mask>` in a text as a token.

A token of a `PlacedEncoder` is a string that also knows its place, so it keeps it when rows are packed, cut or divided.

Letters are the characters of a text without white space, which no step before the BPE changes the order of.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..data.kinds import Kind
from ..data.kinds.windows import Span, kept_characters, units_with_characters
from ..data.pipeline import TextPipeline
from ..data.record import Record, Text
from ..data.rows import EOS, Row, RowEncoder, Sentence
from ..data.text import escape_control_tokens
from .documents import QUESTIONS, names_of

MASK = "<mask>"
_ESCAPED_MASK = escape_control_tokens(MASK)


def knows_places(kind: Kind) -> bool:
    """Tells whether tokens know their places: not those of symbols, nor of turns behind several questions."""
    return kind.is_text and QUESTIONS not in names_of(kind)


class Place(NamedTuple):
    """Characters `begin` to `end` (exclusive) of a text or of an element of it.

    Attributes:
        part: 1 behind a question that has no separator of its own, else 0.
        element: the number of the sentence, segment or word; None in running text.
    """

    part: int
    element: int | None
    begin: int
    end: int


class Placed(str):
    """A token with its place."""

    place: Place | None = None


Letter = tuple[int, int | None, int] | None  # part, element and character; None: of a role before its turn


@dataclass
class PlacedEncoder(RowEncoder):
    """Encodes records as `RowEncoder` does.

    Attributes:
        raw: the record as it was given, if tokens of the source are to know their places.
        has_mask: `<mask>` in a source is the token.
    """

    raw: Record | None = None
    has_mask: bool = False

    def sentences(self, record: Record, text: Text, split: bool = True, element: str | None = None) -> list[Sentence]:
        sentences = super().sentences(record, text, split, element)
        if self.raw is None:
            return sentences
        letters = self._letters(record, text, split)
        placed, begin = list[Sentence](), 0
        for number, sentence in enumerate(sentences):
            end = begin + len(sentence.text.replace(" ", ""))
            units = list(self._units(sentence, begin, bool(number)))
            placed.append(sentence._replace(tokens=placed_tokens(units, letters)))
            begin = end
        assert begin == len(letters), (begin, len(letters))
        return placed

    def tokenize(self, clean: Iterable[str], side: str) -> list[Sentence]:
        sentences = super().tokenize(clean, side)
        if not self.has_mask or side != "source":
            return sentences
        return [
            each._replace(tokens=[token for piece in self._pieces(each, bool(number)) for token in piece.tokens])
            if _ESCAPED_MASK in each.words
            else each
            for number, each in enumerate(sentences)
        ]

    def _pieces(self, sentence: Sentence, follows: bool = False) -> Iterator[Sentence]:
        """Divides a sentence into masks and what stands between them; `follows`: it is not the first of its text."""
        texts, words = sentence.text.split(MASK), sentence.words.split(_ESCAPED_MASK)
        for number, (text, piece) in enumerate(zip(texts, words, strict=True)):
            if number:
                yield Sentence(MASK, MASK, [MASK])
            if clean := piece.strip(" "):
                before = self.bpe.separator if (piece.startswith(" ") if number else follows) else ""
                yield Sentence(text, clean, self.bpe.encode(before + clean))

    def _units(self, sentence: Sentence, begin: int, follows: bool) -> Iterator[tuple[str, Span | None]]:
        """Yields each token with its letters in the text, of which the sentence begins with the letter `begin`."""
        divided = self.has_mask and _ESCAPED_MASK in sentence.words
        for piece in self._pieces(sentence, follows) if divided else [sentence]:
            end = begin + len(piece.text.replace(" ", ""))
            if divided and piece.words == MASK:
                yield MASK, (begin, end)
            else:
                letters = list(range(end - begin))
                for token, span in units_with_characters([piece], letters, self.bpe)[0]:
                    yield token, span and (begin + span[0], begin + span[1])
            begin = end

    def _letters(self, record: Record, text: Text, split: bool) -> list[Letter]:
        """Returns the place of each letter of a text of a record."""
        if not self.kind.has_target:
            return letters_of(text, self.settings.line_breaks if split else "space")
        raw: Any = self.raw
        question = [] if raw.question is None else letters_of(raw.question, "space")
        document = letters_of(raw.text if raw.text is not None else raw.sentences, self.settings.line_breaks)
        behind = bool(question)
        letters = iter([*question, *((behind, element, at) for _, element, at in filter(None, document))])
        placed: list[Letter] = []
        for sentence, prefixed in zip(record.sentences or (), text, strict=True):
            own = len(sentence.replace(" ", ""))
            placed += [None] * (len(prefixed.replace(" ", "")) - own)
            placed += [next(letters, None) for _ in range(own)]
        return placed


def letters_of(text: Text, line_breaks: str) -> list[Letter]:
    """Returns the place of each letter that is kept of a text; `line_breaks`: of running text, one of `LINE_BREAKS`."""
    if isinstance(text, str):
        return [(0, None, at) for at in kept_characters(text, line_breaks)]
    return [(0, number, at) for number, element in enumerate(text) for at in kept_characters((element,))]


def placed_tokens(units: Sequence[tuple[str, Span | None]], letters: Sequence[Letter]) -> list[str]:
    """Returns the tokens of a sentence with their places; one that is only a space stands before the next one."""
    placed, following = list[str](), None
    for token, span in reversed(units):
        each = Placed(token)
        if span is None:
            each.place = following and following._replace(end=following.begin)
        elif known := [letter for letter in letters[slice(*span)] if letter is not None]:
            each.place = Place(int(known[0][0]), known[0][1], known[0][2], known[-1][2] + 1)
        following = each.place
        placed.append(each)
    return placed[::-1]


@dataclass
class PlacedPipeline(TextPipeline):
    """A pipeline whose tokens know their places if `places` is set; `has_mask` as of `PlacedEncoder`."""

    places: bool = False
    has_mask: bool = False
    _raw: Record | None = field(default=None, init=False)

    def prepare(self, record: Record) -> Record:
        self._raw = record if self.places else None
        return super().prepare(record)

    def encoder(self, by_source: bool = False) -> RowEncoder:
        return PlacedEncoder(
            self.kind, self.settings, self.bpe, by_source, self.counts, raw=self._raw, has_mask=self.has_mask
        )


def places_of_row(row: Row, begins: Sequence[int] | None) -> list[Place | None]:
    """Returns the place of each token of a row and its `</s>`, where `part` is the number of the text in the row.

    `begins`: places of the elements in the string that they come from, which offsets then count from.
    """
    places: list[Place | None] = []
    separators = 0
    for token in [*row.tokens, EOS]:
        separators += token == EOS
        place = getattr(token, "place", None)
        if place is not None:
            begin = begins[place.element] if begins is not None and place.element is not None else 0
            part = place.part + (separators + 1) // 2
            place = Place(part, place.element, place.begin + begin, place.end + begin)
        places.append(place)
    return places
