"""Moses as a word tokenizer that does not cut inside a word.

Moses separates every character that is not in its own list of letters and digits. The list lacks most combining marks,
and the letters that Unicode has added since. Such cuts tear a word, and detokenization cannot tell them from others. So
they are undone here: a cut stays where one of both characters does not belong to the word by Unicode's properties.

English, German, Czech and Chinese keep every cut but those at combining marks, joiners and the letters that Moses does
not know, so models that were trained earlier read the same tokens. In French and Spanish apostrophes between letters
stay in their words, too.
"""

from collections.abc import Callable, Iterable
from typing import Any

import regex

LANGUAGES = ("cs", "de", "en", "es", "fr", "zh")
ELISION = frozenset({"fr"})  # what stands before an apostrophe is a word of its own: `l' eau`
AS_MOSES = frozenset({"cs", "de", "en", "zh"})  # the cuts at their punctuation stay

_LETTER = "a"  # for those that Moses does not know
_EAST_ASIAN = r"\p{Han}\p{Hiragana}\p{Katakana}"
_INVISIBLE = r"[\p{Cf}--\xad]"  # joiners and the like; a soft hyphen is a hyphen
_LETTERS = rf"[\p{{L}}\p{{M}}\p{{Nd}}{_INVISIBLE}]"
_WORD = r"[\p{L}\p{M}\p{N}]"


def _between(before: str, mark: str, after: str) -> str:
    """Returns a pattern of the two places beside a mark that stands between what `before` and `after` match."""
    return rf"(?<={before})(?={mark}{after})|(?<={before}{mark})(?={after})"


# Before combining marks and the like, and on both sides of what is invisible: these belong to what is beside them.
_IN_CHARACTERS = rf"(?=[\p{{M}}\p{{Emoji_Modifier}}])|(?={_INVISIBLE})|(?<={_INVISIBLE})"
_IN_WORDS = rf"{_IN_CHARACTERS}|(?<=[{_WORD}_])(?=[{_WORD}_])"
_APOSTROPHE = "['’]"


class _Letters(dict[int, str]):
    """A table for `str.translate`: what Moses must take for a letter becomes one that it knows."""

    def __init__(self, known: str, language: str) -> None:
        self.known = frozenset(known)
        letters = f"[{_LETTERS}--[{_EAST_ASIAN}]]" if language in AS_MOSES else _LETTERS
        self.letters = regex.compile(letters, regex.V1)

    def __missing__(self, code: int) -> str:
        character = chr(code)
        unknown = character not in self.known and self.letters.fullmatch(character)
        self[code] = _LETTER if unknown else character
        return self[code]


def moses(language: str) -> Callable[[str], str]:
    """Returns the tokenizer of a language (ISO 639): it puts a space on each side of every word of a line of text.

    ImportError without sacremoses.
    """
    from sacremoses import MosesTokenizer

    tokenizer: Any = MosesTokenizer(language)
    # Its own versions build a set of all letters of Unicode for every word with a full stop: a second for 5,000.
    letters, small_letters = frozenset(tokenizer.IsAlpha), frozenset(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = small_letters.issuperset
    table, inside = _Letters(tokenizer.IsAlnum, language), regex.compile(_inside(language), regex.V1)

    def separate(text: str) -> str:
        return " ".join(tokenizer.tokenize(text, escape=False))

    def cut(text: str) -> str:
        shown = text if text.isascii() else text.translate(table)
        words = separate(shown)
        if words.replace(" ", "") != shown.replace(" ", ""):
            # A word that looks like the tokenizer's own placeholder (DOTMULTI): leave just this word alone.
            pairs = ((word, separate(word)) for word in shown.split())
            words = " ".join(pieces if pieces.replace(" ", "") == word else word for word, pieces in pairs)
        return _without_cuts(text, map(len, words.split(" ")), inside)

    return cut


def _inside(language: str) -> str:
    """Returns a pattern of the places inside words of a language."""
    if language in AS_MOSES:
        return _IN_CHARACTERS
    if language in ELISION:
        return rf"{_IN_WORDS}|(?<=[\p{{L}}\p{{M}}])(?={_APOSTROPHE}[{_WORD}«“„\"(])"
    return "|".join([_IN_WORDS, _between(_WORD, _APOSTROPHE, r"\p{L}")])


def _without_cuts(text: str, lengths: Iterable[int], inside: regex.Pattern[str]) -> str:
    """Puts a space between the words of a text, whose lengths are given, except where the pattern matches."""
    pieces, place = [], 0
    for length in lengths:
        apart = place < len(text) and text[place].isspace()
        while place < len(text) and text[place].isspace():
            place += 1
        if place and (apart or not inside.match(text, place)):
            pieces.append(" ")
        pieces.append(text[place : place + length])
        place += length
    return "".join(pieces)
