"""Detokenization of Moses' words: decides which words are written without a space.

The tokenizer puts spaces around punctuation and symbols; whether there was one before is lost. These rules give what is
written most often. They follow quotation marks, straight and typographic, and tell apostrophes from them.
"""

import re
from collections import Counter
from collections.abc import Sequence

_BEFORE = frozenset(".,;:!?)]}…%»")  # no space before these
_AFTER = frozenset("([{¿¡#$£«„‚")  # no space after these
_BOTH = frozenset("/@\xad")  # no space on either side
_SPACE_BEFORE_PERCENT = frozenset({"cs", "de", "fi", "fr", "ru", "sv"})
_SHORT_FORMS = frozenset(["s", "t", "d", "m", "re", "ve", "ll", "S", "T", "n", "ne", "nem", "nen", "ner"])
_SHORTENED = re.compile(r"\d0s|til|em|cause|n|nuff|round", re.IGNORECASE)
_PREFIX = re.compile(r"[A-Z]|[dlo]|Mc")
_STRAIGHT = {'"': "“„«", "'": "‘‚"}  # what else each of them may close


def detokenize(words: Sequence[str], language: str) -> str:
    """Returns the text of words that `moses` has separated; `language`: its ISO 639-1 code."""
    text, glued = "", True  # no space before the first word
    opened: list[str] = []  # quotation marks
    later = Counter(words)  # behind the word that is looked at
    for index, word in enumerate(words):
        later[word] -= 1
        left, right = _glue(words, index, language, opened, later)
        text += word if glued or left else f" {word}"
        glued = right
    return text


def _glue(words: Sequence[str], index: int, language: str, opened: list[str], later: Counter[str]) -> tuple[bool, bool]:
    """Whether a word is written together with the one before and the one after it."""
    word = words[index]
    before = words[index - 1] if index else ""
    after = words[index + 1] if index + 1 < len(words) else ""
    if word in "'’" and (sides := _apostrophe(words, index, opened, later)):
        return sides
    if word in "\"'“‘":
        closes = _closes(words, index, language, opened, later)
        _update(opened, word, closes)
        return closes, not closes
    if word in "„‚”’":
        _update(opened, word, word in "”’")
    if word in _BOTH:
        return (False, False) if before[-1:] in (*",.;:",) and word == "/" else (True, True)
    if word in ":–" and before[-1:].isdigit() and after[:1].isdigit():
        return True, True
    if word == "°":
        return False, after in ("C", "F")
    if word == "%":
        return language not in _SPACE_BEFORE_PERCENT, False
    if word in "$£":
        return False, after[:1].isdigit()
    if word in ("...", "..") and language == "cs":
        return True, False
    ends = word in _BEFORE or word in "”’"
    # A word that begins with an apostrophe was cut off from the one before; one with a hyphen stood after a bracket.
    ends = ends or (language == "en" and word[0] in "'’" and word[1:2].isalpha())
    ends = ends or (word[0] == "-" and word[1:2].isalpha() and before in ("'", '"', ")", "]", "”", "“", "’", "‘", "»"))
    return ends, word in _AFTER


def _apostrophe(words: Sequence[str], index: int, opened: list[str], later: Counter[str]) -> tuple[bool, bool] | None:
    """How an apostrophe that stands alone is written; None for a quotation mark."""
    word, before = words[index], words[index - 1] if index else ""
    after = words[index + 1] if index + 1 < len(words) else ""
    if before[-1:].isalpha() and (after in _SHORT_FORMS or (after[:1].isalpha() and _PREFIX.fullmatch(before))):
        return True, True
    if _SHORTENED.fullmatch(after):
        return False, True
    if word == "’":
        return True, False
    alone = word not in opened and not later[word]
    return (True, False) if before[-1:].isalpha() and alone else None


def _closes(words: Sequence[str], index: int, language: str, opened: list[str], later: Counter[str]) -> bool:
    """Whether a mark that may open or close a quotation closes one."""
    word = words[index]
    if word in "“‘":
        return language != "en" and ("„" if word == "“" else "‚") in opened
    if word in opened or any(mark in opened for mark in _STRAIGHT[word]):
        return True
    if later[word] % 2:  # there is another one for it
        return False
    # The quotation began in an earlier segment, or goes on in a later one.
    if index + 1 == len(words):
        return index > 0
    before, after = words[index - 1] if index else "", words[index + 1]
    return bool(before) and (after in _BEFORE or (before in _BEFORE and after[0].islower()))


def _update(opened: list[str], word: str, closes: bool) -> None:
    if not closes:
        opened[:] = [*opened[-8:], word]  # text with many marks that nothing closes has no deeper quotations
    elif opened:
        opened.pop()
