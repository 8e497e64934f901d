r"""Word tokenizers of machine translation, and detokenization.

`none`   words are separated by spaces
`moses`  sacremoses, without its XML escapes (`&amp;`) and without `@-@`: English, German, Czech and others
`jieba`  words of Chinese text

Tokenization only inserts spaces; whether there was one before is lost. Detokenization puts words together as is written
most often, so spaces may differ afterwards: in 1 to 5 % of the segments in English, German and Czech, and in Chinese in
8 % (encyclopaedia) to 72 % (subtitles, which have spaces between clauses). Escaped control tokens (`<\s>`) stay one
word.
"""

import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from hat_fairseq.data.text import ESCAPED_TOKEN

NAMES = ("none", "moses", "jieba")

# A letter or digit of a script that puts spaces between words.
_SPACED = r"[^\W\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
_NEEDLESS_SPACE = re.compile(rf"(?<!{_SPACED}) | (?!{_SPACED})")
_LONG_RUN = re.compile(r"([\w.+#&%-]{1000})")

# Words that Moses has separated.
_BEFORE = frozenset(".,;:!?)]}…%»")  # no space before these
_AFTER = frozenset("([{¿¡#$£«„‚")  # no space after these
_BOTH = frozenset("/@\xad")  # no space on either side
_SPACE_BEFORE_PERCENT = frozenset({"cs", "de", "fi", "fr", "ru", "sv"})
_SHORT_FORMS = frozenset(["s", "t", "d", "m", "re", "ve", "ll", "S", "T", "n", "ne", "nem", "nen", "ner"])
_SHORTENED = re.compile(r"\d0s|til|em|cause|n|nuff|round", re.IGNORECASE)
_PREFIX = re.compile(r"[A-Z]|[dlo]|Mc")
_STRAIGHT = {'"': "“„«", "'": "‘‚"}  # what else each of them may close


class WordTokenizer(NamedTuple):
    """Two functions from text to text."""

    tokenize: Callable[[str], str]  # puts a space on each side of every word, in normalised, escaped text
    detokenize: Callable[[str], str]  # words with spaces between them as running text


@cache
def word_tokenizer(name: str, language: str) -> WordTokenizer:
    """Returns one of `NAMES` for a language (ISO 639-1), made once a process; ValueError if its package is missing."""
    if name == "none":
        return WordTokenizer(str, str)
    try:
        separate, detokenize = _moses(language) if name == "moses" else _jieba()
    except ImportError as error:
        package = "sacremoses" if name == "moses" else name
        raise ValueError(
            f"the word tokenizer {name} needs the package {package}: pip install {package}, "
            'or everything for translation: pip install "hat_fairseq[translation]"'
        ) from error

    def tokenize(text: str) -> str:
        pieces = ESCAPED_TOKEN.split(text)  # text, token, text, token ... text
        words = (piece if index % 2 else separate(piece.strip(" ")) for index, piece in enumerate(pieces))
        return " ".join(filter(None, words))

    return WordTokenizer(tokenize, detokenize)


def _moses(language: str) -> WordTokenizer:
    from sacremoses import MosesTokenizer

    tokenizer: Any = MosesTokenizer(language)
    # Its own versions build a set of all letters of Unicode for every word with a full stop: a second for 5,000.
    letters, small_letters = frozenset(tokenizer.IsAlpha), frozenset(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = small_letters.issuperset

    def separate(text: str) -> str:
        return " ".join(tokenizer.tokenize(text, escape=False))

    def cut(text: str) -> str:
        words = separate(text)
        if words.replace(" ", "") == text.replace(" ", ""):
            return words
        # A word that looks like the tokenizer's own placeholder (DOTMULTI): leave just this word alone.
        pairs = ((word, separate(word)) for word in text.split())
        return " ".join(pieces if pieces.replace(" ", "") == word else word for word, pieces in pairs)

    return WordTokenizer(cut, lambda text: _detokenize(text.split(), language))


def _jieba() -> WordTokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about pkg_resources, which it imports
        import jieba
    jieba.setLogLevel(logging.WARNING)
    # An instance of our own, filled directly: `jieba.cut` would read and write a file in the shared temporary folder.
    tokenizer: Any = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def cut(text: str) -> str:
        # Unknown words take time quadratic in the length of a run without punctuation, so long runs are cut.
        words = (word for piece in _LONG_RUN.split(text) for word in tokenizer.cut(piece))
        return " ".join(word for word in words if not word.isspace())

    return WordTokenizer(cut, lambda text: _NEEDLESS_SPACE.sub("", text))


def _detokenize(words: Sequence[str], language: str) -> str:
    """Returns words that Moses has separated as text.

    The rules follow quotation marks, straight and typographic, and tell apostrophes from them.
    """
    text, glued = "", True  # no space before the first word
    opened: list[str] = []  # quotation marks
    later = Counter(words)  # behind the word that is looked at
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        later[word] -= 1
        left, right = _glue(before, word, after, language, opened, later[word])
        text += word if glued or left else f" {word}"
        glued = right
    return text


def _glue(before: str, word: str, after: str, language: str, opened: list[str], later: int) -> tuple[bool, bool]:
    """Whether a word is written together with the one before and the one after it, empty for none.

    `later`: how often it occurs behind this place.
    """
    if word in "'’" and (sides := _apostrophe(before, word, after, word in opened or later > 0)):
        return sides
    if word in "\"'“‘":
        closes = _closes(before, word, after, language, opened, later)
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


def _apostrophe(before: str, word: str, after: str, paired: bool) -> tuple[bool, bool] | None:
    """How an apostrophe that stands alone is written; None for a quotation mark, which is `paired`."""
    if before[-1:].isalpha() and (after in _SHORT_FORMS or (after[:1].isalpha() and _PREFIX.fullmatch(before))):
        return True, True
    if _SHORTENED.fullmatch(after):
        return False, True
    return (True, False) if word == "’" or (before[-1:].isalpha() and not paired) else None


def _closes(before: str, word: str, after: str, language: str, opened: list[str], later: int) -> bool:
    """Whether a mark that may open or close a quotation closes one."""
    if word in "“‘":
        return language != "en" and ("„" if word == "“" else "‚") in opened
    if word in opened or any(mark in opened for mark in _STRAIGHT.get(word, "")):
        return True
    if later % 2:  # there is another one for it
        return False
    # The quotation began in an earlier segment, or goes on in a later one.
    return bool(before) and (not after or after in _BEFORE or (before in _BEFORE and after[0].islower()))


def _update(opened: list[str], word: str, closes: bool) -> None:
    if not closes:
        opened[:] = [*opened[-8:], word]  # text with many marks that nothing closes has no deeper quotations
    elif opened:
        opened.pop()
