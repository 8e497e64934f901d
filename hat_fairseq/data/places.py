"""Where the tokens of a row stand in the texts as they were given, and `<mask>` in a text as a token.

A token of a `PlacedEncoder` is a string that also knows its place, so it keeps it when rows are packed, cut or divided.

Letters are the characters of a text without white space, which no step before the BPE changes the order of.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hat_fairseq.data.kinds.windows import Span, kept_characters, units_with_characters
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Divider, Prepared, Sentence
from hat_fairseq.data.text import EOS_TOKEN, escape_control_tokens

MASK = "<mask>"
_ESCAPED_MASK = escape_control_tokens(MASK)


class Place(NamedTuple):
    """Characters `begin` to `end` (exclusive) of a text or of an element of it.

    Attributes:
        part: 1 after a question that has no separator of its own, else 0.
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


class PlacedDivider(Divider):
    """Divides texts as `Divider` does, with the place of each of their letters."""

    def sentences(self, record: Record, text: Text, split: bool = True, element: str | None = None) -> Divided:
        divided = super().sentences(record, text, split, element)
        return divided._replace(letters=letters_of(text, self.settings.line_breaks if split else "space"))


@dataclass
class PlacedEncoder(RowEncoder):
    """Encodes records as `RowEncoder` does; the tokens of a text with letters know their places.

    `has_mask`: `<mask>` in a source is the token.
    """

    has_mask: bool = False

    def units(self, text: Divided) -> list[list[str]]:
        units = super().units(text)
        if (letters := text.letters) is None:
            return units
        placed, begin = list[list[str]](), 0
        for number, (sentence, tokens) in enumerate(zip(text.sentences, units, strict=True)):
            end = begin + len(sentence.text.replace(" ", ""))
            placed.append(placed_tokens(list(self._spans(sentence, tokens, begin, bool(number))), letters))
            begin = end
        assert begin == len(letters), (begin, len(letters))
        return placed

    def tokenize(self, sentences: Sequence[Sentence], side: str) -> list[list[str]]:
        units = super().tokenize(sentences, side)
        if not self.has_mask or side != "source":
            return units
        return [
            [token for _, tokens in self._pieces(each, bool(number)) for token in tokens]
            if _ESCAPED_MASK in each.words
            else unit
            for number, (each, unit) in enumerate(zip(sentences, units, strict=True))
        ]

    def _pieces(self, sentence: Sentence, follows: bool = False) -> Iterator[tuple[Sentence, list[str]]]:
        """Divides a sentence into masks and what stands between them, with their tokens.

        `follows`: it is not the first of its text.
        """
        texts, words = sentence.text.split(MASK), sentence.words.split(_ESCAPED_MASK)
        for number, (text, piece) in enumerate(zip(texts, words, strict=True)):
            if number:
                yield Sentence(MASK, MASK), [MASK]
            if clean := piece.strip(" "):
                before = self.bpe.separator if (piece.startswith(" ") if number else follows) else ""
                yield Sentence(text, clean), self.bpe.encode(before + clean)

    def _spans(
        self, sentence: Sentence, tokens: list[str], begin: int, follows: bool
    ) -> Iterator[tuple[str, Span | None]]:
        """Yields each token with its letters in the text, of which the sentence begins with the letter `begin`."""
        divided = self.has_mask and _ESCAPED_MASK in sentence.words
        for piece, its_tokens in self._pieces(sentence, follows) if divided else [(sentence, tokens)]:
            end = begin + len(piece.text.replace(" ", ""))
            if divided and piece.words == MASK:
                yield MASK, (begin, end)
            else:
                letters = list(range(end - begin))
                for token, span in units_with_characters([piece], [its_tokens], letters, self.bpe)[0]:
                    yield token, span and (begin + span[0], begin + span[1])
            begin = end


def letters_of_document(raw: Any, prepared: Prepared, line_breaks: str) -> list[Letter]:
    """Returns the place of each letter of a document's sentences, which may have their roles before them."""
    question = [] if raw.question is None else letters_of(raw.question, "space")
    document = letters_of(raw.text if raw.text is not None else raw.elements, line_breaks)
    after = bool(question)
    letters = iter([*question, *((after, element, at) for _, element, at in filter(None, document))])
    placed: list[Letter] = []
    for sentence, prefixed in zip(prepared.record.elements or (), prepared.texts[0].sentences, strict=True):
        own = len(sentence.replace(" ", ""))
        placed += [None] * (len(prefixed.text.replace(" ", "")) - own)
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

    def prepare(self, record: Record) -> Prepared:
        if not self.places:
            return super().prepare(record)
        if self.kind.has_target:
            prepared = super().prepare(record)
            letters = letters_of_document(record, prepared, self.settings.line_breaks)
            return replace(prepared, texts=[prepared.texts[0]._replace(letters=letters), *prepared.texts[1:]])
        prepared = Prepared(record, self.kind.divide(PlacedDivider(self.settings, self.counts), record))
        return self.kind.with_letters(prepared)

    def encoder(self, chunk_by_source: bool = False) -> RowEncoder:
        options = self.settings, self.bpe, self.kind.policies, chunk_by_source, self.counts
        return PlacedEncoder(*options, needed=self.needed, has_mask=self.has_mask)


def places_of_row(row: Row, begins: Sequence[int] | None) -> list[Place | None]:
    """Returns the place of each token of a row and its `</s>`, where `part` is the number of the text in the row.

    `begins`: places of the elements in the string that they come from, which offsets then count from.
    """
    places: list[Place | None] = []
    separators = 0
    for token in [*row.tokens, EOS_TOKEN]:
        separators += token == EOS_TOKEN
        place = getattr(token, "place", None)
        if place is not None:
            begin = begins[place.element] if begins is not None and place.element is not None else 0
            part = place.part + (separators + 1) // 2
            place = Place(part, place.element, place.begin + begin, place.end + begin)
        places.append(place)
    return places


def text_at(places: Iterable[Place | None], texts: Sequence[Text]) -> str:
    """Returns what stands at some places of the texts of a row, as it was given.

    Pieces of several elements, or of several texts, have a space between them.
    """
    spans: dict[tuple[int, int | None], Span] = {}
    for place in filter(None, places):
        where = place.part, place.element
        begin, end = spans.get(where, (place.begin, place.end))
        spans[where] = min(begin, place.begin), max(end, place.end)
    pieces = []
    for (part, element), (begin, end) in spans.items():
        text = texts[part]
        pieces.append((text if isinstance(text, str) else text[element or 0])[begin:end])
    return " ".join(pieces)
