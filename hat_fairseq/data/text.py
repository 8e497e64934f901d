r"""Text before the BPE: line breaks, control characters and control tokens, and sentence boundaries.

No Unicode normalisation form is applied, because pretrained models have seen text as written, and scores are computed
against the reference's own characters.

Sentences are found in one of three ways:

`given`         the source's own sentences, segments or turns; nothing is split
`punctuation`   after . ! ? and their like (Rohde et al. 2021, section 3.1: boundaries "by punctuation")
`library`       the sentence-splitter package: knows abbreviations in some twenty languages, works offline
"""

import re
from collections import Counter
from functools import cache
from itertools import islice, pairwise
from typing import Any


class EmptyDocumentError(ValueError):
    """Nothing is left of a document, or of its target or a part of it, after normalisation."""


# What is counted, what it matches, what takes its place; in this order.
_TREATMENTS = (
    ("line_breaks_to_space", re.compile(r"\r?\n"), " "),
    ("carriage_returns_to_space", re.compile(r"\r"), " "),
    ("tabs_to_space", re.compile(r"\t"), " "),
    # Everything else Python or fairseq would split at: vertical tabs, form feeds, U+0085, U+00A0, U+2028, U+3000...
    ("other_whitespace_to_space", re.compile(r"[^\S ]"), " "),
    ("control_characters_removed", re.compile(r"[\x00-\x1f\x7f-\x9f]"), ""),
    ("lone_surrogates_replaced", re.compile("[\ud800-\udfff]"), "\ufffd"),
    ("runs_of_spaces_shortened", re.compile(r"(?<= ) +"), ""),
)

SEPARATOR = "<sep>"  # between the segments of a target, where they are to stay countable
CONTROL_TOKENS = ("<s>", "</s>", "<pad>", "<unk>", "<mask>", SEPARATOR)
_NAMES = "s|/s|pad|unk|mask|sep"
_LITERAL = re.compile(rf"<(\\*)({_NAMES})>")
_ESCAPED = re.compile(rf"<\\(\\*)({_NAMES})>")
ESCAPED_TOKEN = re.compile(rf"(<\\+(?:{_NAMES})>)")  # with one group, so that `split` keeps the tokens


def normalise(text: str, counts: Counter[str]) -> str:
    """Put `text` on one line of plain spaces and printable characters; each replacement is added to `counts`."""
    if text.isprintable() and "  " not in text:  # no white space but spaces, nothing invisible: the usual case
        return text.strip(" ")
    for name, pattern, replacement in _TREATMENTS:
        text, number = pattern.subn(replacement, text)
        if number:
            counts[name] += number
    return text.strip(" ")


def escape_control_tokens(text: str, counts: Counter[str] | None = None) -> str:
    r"""`<s>` -> `<\s>`, `<\s>` -> `<\\s>`, and so on: no control token is left, and the mapping is invertible.

    Adds `control_tokens_escaped` to `counts`.
    """
    text, number = _LITERAL.subn(r"<\\\1\2>", text)
    if counts is not None and number:
        counts["control_tokens_escaped"] += number
    return text


def restore_control_tokens(text: str) -> str:
    """Inverts `escape_control_tokens`."""
    return _ESCAPED.sub(r"<\1\2>", text)


def split_segments(decoded: str) -> list[str]:
    """Returns the segments of a text that `TextPipeline.decode` returned, which has a tab for each `<sep>`."""
    return [segment.strip() for segment in decoded.split("\t")]


SPLITTERS = ("given", "punctuation", "library")

# A run of end marks (the lookbehind keeps the search linear on long runs), closing quotes or brackets, and white space;
# full-width marks need no white space.
_SENTENCE_END = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]]*+\s+|[。！？]++["'”’»」』）)\]]*+\s*""")


def split_sentences(text: str, method: str, language: str = "en") -> list[str]:
    """Split running text by one of `SPLITTERS`; `language`: ISO 639-1 code, used by `library`.

    Nothing but white space is lost; no sentence is empty. Text without a sentence end is one sentence; text without
    words is none. ValueError for an unknown method or language, a missing package, or `given`.
    """
    if method not in SPLITTERS:
        raise ValueError(f"unknown sentence splitter {method!r}; choose one of {', '.join(SPLITTERS)}")
    if method == "given":
        raise ValueError(
            "running text has no given sentences; give sentences or turns, or --splitter punctuation or --splitter "
            "library"
        )
    if method == "library":
        pieces = _split_with_library(text, language)
    else:
        ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
        pieces = [text[begin:end] for begin, end in pairwise(ends)]
    return [piece for piece in map(str.strip, pieces) if piece]


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
