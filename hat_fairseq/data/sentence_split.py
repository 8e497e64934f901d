"""Sentence boundaries behind one interface.

`given`        the source's own sentences, segments or turns; nothing is split
`punctuation`  after . ! ? and their like (Rohde et al. 2021, section 3.1: boundaries "by punctuation")
`library`      the sentence-splitter package: knows abbreviations in some twenty languages, works offline
"""

import re
from functools import cache
from itertools import islice
from typing import Any

METHODS = ("given", "punctuation", "library")

# A run of end marks (the lookbehind keeps the search linear on long runs), closing quotes or brackets, and white space;
# full-width marks need no white space.
_SENTENCE_END = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+\s+|[。！？]++["'”’»」』）)\]]*+\s*""")


def split_sentences(text: str, method: str, language: str = "en") -> list[str]:
    """Split running text. Nothing but white space is lost; no sentence is empty.

    Text without a sentence end is one sentence; text without words is none.

    Args:
        method: one of `METHODS`.
        language: ISO 639-1 code, used by `library`.

    Raises:
        ValueError: unknown method or language, missing package, or `given`, which running text cannot satisfy.
    """
    if method == "punctuation":
        pieces = _split_at_punctuation(text)
    elif method == "library":
        pieces = _split_with_library(text, language)
    elif method == "given":
        raise ValueError(
            "running text has no given sentences; give sentences or turns, or preprocess with --splitter punctuation "
            "or --splitter library"
        )
    else:
        raise ValueError(f"unknown sentence splitter {method!r}; choose one of {', '.join(METHODS)}")
    return [piece for piece in map(str.strip, pieces) if piece]


def _split_at_punctuation(text: str) -> list[str]:
    pieces = []
    begin = 0
    for match in _SENTENCE_END.finditer(text):
        pieces.append(text[begin : match.end()])
        begin = match.end()
    return [*pieces, text[begin:]]


def _split_with_library(text: str, language: str) -> list[str]:
    words = text.split()
    # The package breaks only between words, but its expressions need minutes for 50,000 dots in a row: show it both
    # ends of such a word, and put the words back afterwards.
    shown = (word if len(word) <= 100 else word[:50] + word[-50:] for word in words)
    lengths = [len(sentence.split()) for sentence in _library_splitter(language).split(" ".join(shown))]
    remaining = iter(words)
    return [" ".join(islice(remaining, length)) for length in lengths]


@cache
def _library_splitter(language: str) -> Any:
    try:
        from sentence_splitter import SentenceSplitter, SentenceSplitterException
    except ImportError as error:
        raise ValueError(
            "--splitter library needs the sentence-splitter package: pip install sentence-splitter "
            "(or choose --splitter punctuation)"
        ) from error
    try:
        return SentenceSplitter(language=language)
    except SentenceSplitterException as error:
        raise ValueError(f"the sentence-splitter package does not know the language {language!r}") from error
