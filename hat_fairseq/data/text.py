r"""Text before the BPE: line breaks, control characters and control tokens, and sentence boundaries.

A text that shows nothing is empty, wherever it stands; `is_blank` decides. Between visible characters, invisible ones
stay (but control characters): joiners in Persian or in emoji, for example, have a meaning.

No Unicode normalisation form is applied, because pretrained models have seen text as written, and scores are computed
against the reference's own characters.

Sentences are found in one of three ways:

`given`         the source's own sentences, segments or turns; nothing is split
`punctuation`   after the end marks of all scripts (Rohde et al. 2021, section 3.1: boundaries "by punctuation")
`library`       the sentence-splitter package: knows abbreviations in some twenty languages, works offline

What a line break of running text is:

`space`       white space
`paragraphs`  a blank line ends a sentence, and so does a line break before or after a heading (`#`), and before an item
                of a list (`-`, `*`, a bullet, `1.`, `1)`); every other one is white space
`sentences`   the end of a sentence
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from html.entities import html5
from itertools import islice, pairwise
from typing import Any

import regex

from hat_fairseq.data.language import base_language, has_space_after_sentence, has_spaces, pattern, sentence_ends
from hat_fairseq.data.options import SPLITTERS
from hat_fairseq.options import OptionError

_REFERENCE = re.compile(r"&(?:(#\d{1,7}|#[xX][\da-fA-F]{1,6});|(\w+;))")  # of HTML
# Of Chinese and Japanese, sentences of a target without <sep> come back with a space after each.
SPACE_AFTER_SENTENCE = re.compile(r"(?<=[。！？…」』）”]) ")


class EmptyDocumentError(ValueError):
    """Nothing is left of a document, or of its target or a part of it, after normalisation."""


# Default_Ignorable_Code_Point: the byte order mark, zero width spaces and joiners, soft hyphens, marks of direction,
# fillers of Hangul, variation selectors. Marks that are prepended to numbers are format characters (Cf), but visible.
# U+2800 is the braille pattern without dots, U+1D159 the note without a head.
_INVISIBLE = (
    r"[\p{White_Space}\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\U0001D159"
    r"[\p{Cf}--\p{Prepended_Concatenation_Mark}]]"
)
_VISIBLE, _HIDDEN = (regex.compile(f"(?V1){pattern}") for pattern in (f"[^{_INVISIBLE}]", f"{_INVISIBLE}+"))


def is_blank(text: str) -> bool:
    """Tells whether a text shows nothing: it is empty, or has only white space and invisible characters."""
    return not "!" <= text[:1] <= "~" and _VISIBLE.search(text) is None


def shown(text: str) -> str:
    """Returns the text, or an empty one if it shows nothing."""
    return "" if is_blank(text) else text


def visible_characters(text: str) -> str:
    """Returns the characters that show something."""
    return str(_HIDDEN.sub("", text))


# What is counted, what it matches, what takes its place; in this order.
_TREATMENTS = (
    ("line_breaks_to_space", re.compile(r"\r?\n"), " "),
    ("carriage_returns_to_space", re.compile(r"\r"), " "),
    ("tabs_to_space", re.compile(r"\t"), " "),
    # Everything else Python or fairseq would split at: vertical tabs, form feeds, U+0085, U+00A0, U+2028, U+3000...
    ("other_whitespace_to_space", re.compile(r"[^\S ]"), " "),
    ("control_characters_removed", re.compile(r"[\x00-\x1f\x7f-\x9f]"), ""),
    ("lone_surrogates_replaced", re.compile("[\ud800-\udfff]"), "\ufffd"),
)
_RUN_OF_SPACES = re.compile(r"(?<= ) +")

BOS_TOKEN = "<s>"  # before each sentence or segment
EOS_TOKEN = "</s>"  # two of them between the parts of a row, as in RoBERTa; one between documents
SEPARATOR = "<sep>"  # between the segments of a target, where they are to stay countable
CONTROL_TOKENS = (BOS_TOKEN, EOS_TOKEN, "<pad>", "<unk>", "<mask>", SEPARATOR)
_NAMES = "s|/s|pad|unk|mask|sep"
_LITERAL = re.compile(rf"<(\\*)({_NAMES})>")
_ESCAPED = re.compile(rf"<\\(\\*)({_NAMES})>")
ESCAPED_TOKEN = re.compile(rf"(<\\+(?:{_NAMES})>)")  # with one group, so that `split` keeps the tokens


def normalise(text: str, counts: Counter[str]) -> str:
    """Puts `text` on one line of plain spaces, without control characters; empty if it shows nothing.

    Each replacement is added to `counts`.
    """
    blank = is_blank(text)  # before a lone surrogate has become U+FFFD, which is visible
    if text.isprintable() and "  " not in text:  # no white space but spaces, no control characters: the usual case
        return "" if blank else text.strip(" ")
    for name, treated, replacement in _TREATMENTS:
        if text.isprintable():  # then no other treatment finds anything
            break
        text, number = treated.subn(replacement, text)
        if number:
            counts[name] += number
    if "  " in text:
        text, number = _RUN_OF_SPACES.subn("", text)
        counts["runs_of_spaces_shortened"] += number
    return "" if blank else text.strip(" ")


def unescape(text: str) -> str:
    """Resolves `&amp;`, `&#8217;` and the like; an ampersand without semicolon, or of an unknown name, stays."""
    return _REFERENCE.sub(lambda match: html.unescape(match[0]) if match[1] or match[2] in html5 else match[0], text)


def escape_control_tokens(text: str, counts: Counter[str] | None = None) -> str:
    r"""Maps `<s>` -> `<\s>`, `<\s>` -> `<\\s>`, and so on: no control token is left, and the mapping is invertible.

    Adds `control_tokens_escaped` to `counts`.
    """
    if "<" not in text:
        return text
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


_LINE = rf"[{_INVISIBLE}--\n]*\n"
_BLANK_LINES = rf"{_LINE}(?:{_LINE})+\s*"
_BEFORE_ITEM = rf"{_LINE}(?=[^\S\n]*(?:[-*+•‣▪◦●·–—]|\d{{1,3}}[.)]|#{{1,6}})[^\S\n])"
_INVISIBLE_END = regex.compile(rf"(?V1r)[{_INVISIBLE}--\n]*")  # backwards from the end of a line
_AFTER_HEADING = r"(?m:(?<=^)#{1,6}[^\S\n][^\n]*\K\n)"
PARAGRAPH_BREAKS = f"{_BLANK_LINES}|{_BEFORE_ITEM}|{_AFTER_HEADING}"


def split_lines(text: str, line_breaks: str) -> list[str]:
    """Divides running text where a line break ends a sentence: by one of `options.LINE_BREAKS`."""
    if "\n" not in text or line_breaks == "space":
        return [text]
    if line_breaks == "sentences":
        return text.split("\n")
    return list(_paragraphs(text))


def _paragraphs(text: str) -> Iterator[str]:
    """Yields what is between the line breaks that end a sentence.

    The expression for them is tried where one may begin: at a heading, and where the visible characters of a line end.
    To search for it would take thirty times as long.
    """
    breaks, last, begin = pattern(PARAGRAPH_BREAKS), 0, 0
    while (end := text.find("\n", begin)) >= 0:
        is_first = begin == 0 or text[begin - 1] == "\n"
        match = breaks.match(text, begin) if is_first and text[begin] == "#" else None
        if match := match or breaks.match(text, _INVISIBLE_END.match(text, begin, end).start()):
            yield text[last : match.start()]
            last = begin = match.end()
        else:
            begin = end + 1
    yield text[last:]


def split_sentences(text: str, method: str, language: str = "en") -> list[str]:
    """Splits running text by one of `options.SPLITTERS`; `language`: a code of BCP 47.

    Nothing but white space is lost; no sentence is empty: what shows nothing belongs to the sentence before it. Text
    without a sentence end is one sentence; text without words is none. ValueError for an unknown method or
    language, a missing package, or `given`.
    """
    if method not in SPLITTERS:
        raise ValueError(f"unknown sentence splitter {method!r}; choose one of {', '.join(SPLITTERS)}")
    if method == "given":
        text = "running text has no given sentences; give sentences or turns, or {splitter} or {}"
        raise OptionError(text, "library", splitter="punctuation")
    if method == "library":
        pieces = _split_with_library(text, language)
    else:
        ends = [0, *sentence_ends(text, language), len(text)]
        pieces = [text[begin:end] for begin, end in pairwise(ends)]
    sentences: list[str] = []
    for piece in pieces:
        if is_blank(piece) and sentences:
            sentences[-1] += piece
        else:
            sentences.append(piece)
    return [sentence for sentence in map(str.strip, sentences) if sentence]


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
        text = "{splitter} needs the sentence-splitter package: pip install sentence-splitter (or choose punctuation)"
        raise OptionError(text, splitter="library") from error
    try:
        return SentenceSplitter(language=base_language(language))
    except SentenceSplitterException as error:
        text = "the sentence-splitter package does not know the language {}; choose {splitter}"
        raise OptionError(text, repr(language), splitter="punctuation") from error


def count_words(text: str, language: str) -> int:
    """Counts words between white space, or for languages without it the characters that are no white space."""
    if has_spaces(language) and text.isprintable() and "  " not in text:  # white space is single spaces
        return (stripped := text.strip(" ")).count(" ") + bool(stripped)
    words = text.split()
    return len(words) if has_spaces(language) else sum(map(len, words))


def join_sentences(sentences: Iterable[str], language: str) -> str:
    """Returns sentences with spaces between them; of Chinese and Japanese, only between ASCII characters.

    Those that show nothing are left out.
    """
    sentences = (sentence for sentence in sentences if not is_blank(sentence))
    if has_space_after_sentence(language):
        return " ".join(sentences)
    text = ""
    for sentence in sentences:
        text += (" " if text and (text[-1] + sentence[0]).isascii() else "") + sentence
    return text
