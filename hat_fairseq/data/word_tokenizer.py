r"""Word tokenizers of machine translation.

`none`   words are separated by spaces
`moses`  sacremoses, without its XML escapes (`&amp;`) and without `@-@`, for languages with spaces between words
`jieba`  words of Chinese text

Tokenization only inserts spaces; whether there was one before is lost. Detokenization puts words together as is written
most often, so spaces may differ afterwards; `round_trip.py` counts how often. Escaped control tokens (`<\s>`) stay one
word.
"""

import logging
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from hat_fairseq.data.detokenizer import detokenize
from hat_fairseq.data.language import base_language
from hat_fairseq.data.moses import LANGUAGES, moses
from hat_fairseq.data.options import Settings
from hat_fairseq.data.text import ESCAPED_TOKEN

# A letter or digit of a script that puts spaces between words.
_SPACED = r"[^\W\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
_NEEDLESS_SPACE = re.compile(rf"(?<!{_SPACED}) | (?!{_SPACED})")
_LONG_RUN = re.compile(r"([\w.+#&%-]{1000})")


class WordTokenizer(NamedTuple):
    """Two functions from text to text."""

    tokenize: Callable[[str], str]  # puts a space on each side of every word, in normalised, escaped text
    detokenize: Callable[[str], str]  # words with spaces between them as running text


AS_IT_IS = WordTokenizer(str, str)


def word_tokenizer_of(settings: Settings, side: str) -> WordTokenizer:
    """Returns the word tokenizer of the `source` or the `target`; ValueError if its package is missing."""
    name = getattr(settings, f"{side}_tokenizer")
    return AS_IT_IS if name == "none" else word_tokenizer(name, base_language(getattr(settings, f"{side}_language")))


@cache
def word_tokenizer(name: str, language: str) -> WordTokenizer:
    """Returns one of `options.WORD_TOKENIZERS` for a language (ISO 639), made once a process.

    Raises:
        ValueError: its package is missing, or Moses for another language than `moses.LANGUAGES`.
    """
    if name == "none":
        return AS_IT_IS
    if name == "moses" and language not in LANGUAGES:
        raise ValueError(
            f"the word tokenizer moses knows {', '.join(LANGUAGES)}, not {language}: take none, with which texts come "
            "back as they were written"
        )
    try:
        separate, join = _moses(language) if name == "moses" else _jieba()
    except ImportError as error:
        package = "sacremoses" if name == "moses" else name
        raise ValueError(
            f"the word tokenizer {name} needs the package {package}: pip install {package}, "
            'or all packages for data: pip install "hat_fairseq[data]"'
        ) from error

    def tokenize(text: str) -> str:
        pieces = ESCAPED_TOKEN.split(text)  # text, token, text, token ... text
        words = (piece if index % 2 else separate(piece.strip(" ")) for index, piece in enumerate(pieces))
        return " ".join(filter(None, words))

    return WordTokenizer(tokenize, join)


def _moses(language: str) -> WordTokenizer:
    return WordTokenizer(moses(language), lambda text: detokenize(text.split(), language))


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
