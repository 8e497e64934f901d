r"""Word tokenizers of machine translation, and detokenization.

`none`   words are separated by spaces
`moses`  sacremoses, without its XML escapes (`&amp;`) and without `@-@`: English, German, Czech and others
`jieba`  words of Chinese text

Tokenization only inserts spaces. Detokenization follows rules (`detokenize.py`), so spaces may differ afterwards: in 1
to 5 % of the segments in English, German and Czech, and in Chinese in 8 % (encyclopaedia) to 72 % (subtitles, which
have spaces between clauses). Escaped control tokens (`<\s>`) stay one word.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from .detokenize import detokenize
from .text import ESCAPED_TOKEN

NAMES = ("none", "moses", "jieba")
WITHOUT_SPACES = ("zh", "ja")  # languages whose words are counted by characters
# Of these languages sentences of a target without <sep> come back with a space after each.
SPACE_AFTER_SENTENCE = re.compile(r"(?<=[。！？…」』）”]) ")

# A letter or digit of a script that puts spaces between words.
_SPACED = r"[^\W\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
_NEEDLESS_SPACE = re.compile(rf"(?<!{_SPACED}) | (?!{_SPACED})")
_LONG_RUN = re.compile(r"([\w.+#&%-]{1000})")


@dataclass(frozen=True)
class WordTokenizer:
    """Two functions from text to text."""

    tokenize: Callable[[str], str]  # puts a space on each side of every word, in normalised, escaped text
    detokenize: Callable[[str], str]  # words with spaces between them as running text


@cache
def word_tokenizer(name: str, language: str) -> WordTokenizer:
    """Returns one of `NAMES` for a language (ISO 639-1), made once a process; ValueError if its package is missing."""
    if name == "moses":
        return _moses(language)
    return _jieba() if name == "jieba" else WordTokenizer(str, str)


def count_words(text: str, language: str) -> int:
    """Counts words between white space, or for Chinese and Japanese the characters that are no white space."""
    words = text.split()
    return sum(map(len, words)) if language in WITHOUT_SPACES else len(words)


def join_sentences(sentences: Iterable[str], language: str) -> str:
    """Returns sentences with spaces between them; of Chinese and Japanese, only between ASCII characters."""
    if language not in WITHOUT_SPACES:
        return " ".join(filter(None, sentences))
    text = ""
    for sentence in filter(None, sentences):
        text += (" " if text and (text[-1] + sentence[0]).isascii() else "") + sentence
    return text


def _moses(language: str) -> WordTokenizer:
    try:
        from sacremoses import MosesTokenizer
    except ImportError as error:
        raise _missing("moses", "sacremoses") from error
    tokenizer: Any = MosesTokenizer(language)
    # Its own versions build a set of all letters of Unicode for every word with a full stop: a second for 5,000.
    letters, small_letters = frozenset(tokenizer.IsAlpha), frozenset(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = small_letters.issuperset

    def separate(text: str) -> str:
        return " ".join(tokenizer.tokenize(text, escape=False))

    def cut(text: str) -> str:
        words = separate(text)
        if _letters(words) == _letters(text):
            return words
        # A word that looks like the tokenizer's own placeholder (DOTMULTI): leave just this word alone.
        pairs = ((word, separate(word)) for word in text.split())
        return " ".join(pieces if _letters(pieces) == word else word for word, pieces in pairs)

    return WordTokenizer(_around_control_tokens(cut), lambda text: detokenize(text.split(), language))


def _jieba() -> WordTokenizer:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pkg_resources, which it imports
            import jieba
    except ImportError as error:
        raise _missing("jieba", "jieba") from error
    jieba.setLogLevel(logging.WARNING)
    # An instance of our own, filled directly: `jieba.cut` would read and write a file in the shared temporary folder.
    tokenizer: Any = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True

    def cut(text: str) -> str:
        # Unknown words take time quadratic in the length of a run without punctuation, so long runs are cut.
        words = (word for part in _LONG_RUN.split(text) for word in tokenizer.cut(part))
        return " ".join(word for word in words if not word.isspace())

    return WordTokenizer(_around_control_tokens(cut), lambda text: _NEEDLESS_SPACE.sub("", text))


def _around_control_tokens(cut: Callable[[str], str]) -> Callable[[str], str]:
    def tokenize(text: str) -> str:
        parts = ESCAPED_TOKEN.split(text)  # text, token, text, token ... text
        words = (part if index % 2 else cut(part.strip(" ")) for index, part in enumerate(parts))
        return " ".join(filter(None, words))

    return tokenize


def _letters(text: str) -> str:
    return text.replace(" ", "")


def _missing(name: str, package: str) -> ValueError:
    return ValueError(
        f"the word tokenizer {name} needs the package {package}: pip install {package}, "
        'or everything for translation: pip install "hat_fairseq[translation]"'
    )
