"""Words that Moses has separated become text: which of them are written together, by language.

The rules follow quotation marks, straight and typographic, and tell apostrophes from them. What they decide about a
word depends on the words of its segment only.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import regex

from hat_fairseq.data.language import has_spaces
from hat_fairseq.data.moses import AS_MOSES, ELISION

Sides = tuple[bool, bool]  # whether a word is written together with the one before, and with the one after

_ENDS = regex.compile(r"[\p{Terminal_Punctuation}\p{Pe}%‰٪…»™®²³¹⁰-₉]", regex.V1)  # no space before these
_BEGINS = frozenset("([{¿¡#«„‚\\")  # no space after these
_BOTH = frozenset("/@\xad\u2010\u2011\u05be")  # no space on either side: hyphens and the like
_EAST_ASIAN_MARK = regex.compile(
    r"[\u3001-\u3003\u3008-\u301f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
_EAST_ASIAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー々]")
_CURRENCY = regex.compile(r"\p{Sc}")
_APOSTROPHES = "'’"

_SPACE_BEFORE_PERCENT = frozenset({"cs", "de", "fr"})
_FRENCH_SPACE = frozenset(":;!?»")
_CLOSES_WITH_HIGH_MARK = _GUILLEMETS_INWARDS = frozenset({"cs", "de"})  # „so“, »so«
_SHORT_FORMS = frozenset(["s", "t", "d", "m", "re", "ve", "ll", "S", "T", "n", "ne", "nem", "nen", "ner"])
_SHORTENED = regex.compile(r"\d0s|til|em|cause|n|nuff|round", regex.IGNORECASE)
_ELIDED = regex.compile(r"[\p{L}\p{M}]['’]$")
_YEARS = regex.compile(r"\d\d\d?")  # los años '80
_CITATION = regex.compile(r"\d+ \]")  # of a source, [1]
_PREFIX = regex.compile(r"[A-Z]|[dlo]|Mc")
_STRAIGHT = {'"': "“„«", "'": "‘‚"}  # what else each of them may close
_SCHEMES = frozenset({"http", "https", "ftp", "ftps", "file", "sftp", "smb"})


class _Place(NamedTuple):
    """A word and its neighbours, empty for none."""

    before: str
    word: str
    after: str
    next: str  # the one after `after`
    language: str


def detokenize(words: Sequence[str], language: str) -> str:
    """Returns words that Moses has separated as text; `language`: its code (ISO 639)."""
    pieces, glued = list[str](), True  # no space before the first word
    opened: list[str] = []  # quotation marks
    later = Counter(words)  # after the word that is looked at
    for before, word, after, following in zip(
        ["", *words], words, [*words[1:], ""], [*words[2:], "", ""], strict=False
    ):
        later[word] -= 1
        left, right = _sides(_Place(before, word, after, following, language), opened, later)
        pieces.append(word if glued or left else f" {word}")
        glued = right
    return "".join(pieces)


def _sides(place: _Place, opened: list[str], later: Counter[str]) -> Sides:
    """How a word is written; `later`: how often each word occurs after this place."""
    before, word, after, _, language = place
    sides = _apostrophe(place, word in opened or later[word] > 0) if word in _APOSTROPHES else None
    left, right = sides or _quotation(place, opened, later) or _part_of_word(place) or _mark(place)
    if not word[0].isalnum() and not has_spaces(language):
        left, right = left or _is_east_asian(before[-1:]), right or _is_east_asian(after[:1])
    elif language in AS_MOSES and _is_east_asian(word):  # the only languages in which Moses cuts between them
        left = left or _is_east_asian(before[-1:])
    return left, right


def _is_east_asian(letter: str) -> bool:
    return bool(_EAST_ASIAN.fullmatch(letter))


def _apostrophe(place: _Place, paired: bool) -> Sides | None:
    """How an apostrophe that stands alone is written; None for a quotation mark, which is `paired`."""
    before, word, after, _, language = place
    if language in AS_MOSES:
        if before[-1:].isalpha() and (after in _SHORT_FORMS or (after[:1].isalpha() and _PREFIX.fullmatch(before))):
            return True, True
        if _SHORTENED.fullmatch(after):
            return False, True
        return (True, False) if word == "’" or (before[-1:].isalpha() and not paired) else None
    if _YEARS.fullmatch(after) and not paired:
        return False, True
    ends = before and (word == "’" or (before[-1:].isalpha() and not paired))
    return (True, False) if ends else None


def _quotation(place: _Place, opened: list[str], later: Counter[str]) -> Sides | None:
    """How a quotation mark is written; None for other words, and for marks that `_mark` knows."""
    before, word, after, _, language = place
    if word in "\"'“‘":
        closes = _closes(place, opened, later[word])
    elif word in "«»":
        closes = _guillemet_closes(place, opened, later)
    elif word in "„‚”’":
        closes = word in "”’"
    else:
        return None
    _update(opened, word, closes)
    return (False, False) if language == "fr" and word in "«»" else (closes, not closes)


def _closes(place: _Place, opened: list[str], later: int) -> bool:
    """Whether a mark that may open or close a quotation closes one."""
    before, word, after, _, language = place
    if word in "“‘":
        if language != "en" and ("„" if word == "“" else "‚") in opened:
            return True
        if language not in _CLOSES_WITH_HIGH_MARK:
            return False
        if language == "cs":  # “ opens nothing
            return bool(before)
    elif word in opened or any(mark in opened for mark in _STRAIGHT.get(word, "")):
        return True
    elif later % 2:  # there is another one for it
        return False
    # The quotation began in an earlier segment, or goes on in a later one.
    return bool(before) and (not after or _ends(after) or (_ends(before) and after[0].islower()))


def _guillemet_closes(place: _Place, opened: list[str], later: Counter[str]) -> bool:
    """Whether « or » closes a quotation; they may be written «so», and in some languages »so«."""
    word, partner = place.word, "«" if place.word == "»" else "»"
    if partner in opened:
        return True
    return word == "»" and not (place.language in _GUILLEMETS_INWARDS and later[partner] > 0)


def _update(opened: list[str], word: str, closes: bool) -> None:
    if not closes:
        opened[:] = [*opened[-8:], word]  # text with many marks that nothing closes has no deeper quotations
    elif opened:
        opened.pop()


def _part_of_word(place: _Place) -> Sides | None:
    """How a part of a word is written that keeps its apostrophe, or its hyphen; None for others."""
    before, word, after, _, language = place
    if language in ELISION and _ELIDED.search(word):
        return False, True
    if language == "en" and word[0] in _APOSTROPHES and word[1:2].isalpha():
        return True, False
    if word[0] == "-" and word[1:2].isalpha() and before in ("'", '"', ")", "]", "”", "“", "’", "‘", "»"):
        return True, False
    return None


def _mark(place: _Place) -> Sides:
    """How other marks, and words, are written."""
    before, word, after, following, language = place
    between_digits = before[-1:].isdigit() and after[:1].isdigit()
    if word in _BOTH:
        return (False, False) if before[-1:] in (*",.;:",) and word == "/" else (True, True)
    if word == ":" and (after, following) == ("/", "/") and before.lower() in _SCHEMES:
        return True, True
    if (word in ":–—" and between_digits) or (word == "—" and language == "en"):
        return True, True
    if word == "_" and (before[-1:].isalnum() or after[:1].isalnum()):
        return before[-1:].isalnum() or before[-1:] == "_", after[:1].isalnum() or after[:1] == "_"
    if word == "°":
        celsius = after.removesuffix(".") in ("C", "F")
        return not celsius, celsius
    if word == "[" and _CITATION.fullmatch(f"{after} {following}") and _ends(before):
        return True, True
    if word == "%":
        return language not in _SPACE_BEFORE_PERCENT, False
    if word in "$£" or (_CURRENCY.fullmatch(word) and language not in ("cs", "de")):
        return False, after[:1].isdigit() and not (word not in "$£" and before[-1:].isdigit())
    if word in ("...", "..") and language not in ("de", "en"):
        return True, False
    if language == "fr" and word in _FRENCH_SPACE:
        return before in ("?", "!") and word in "?!", False
    if _EAST_ASIAN_MARK.fullmatch(word):
        return True, True
    return _ends(word), word in _BEGINS


def _ends(word: str) -> bool:
    return bool(_ENDS.fullmatch(word))
