r"""What languages and scripts are: codes of languages, words without spaces between them, ends of sentences.

A language is named by a code of BCP 47, such as `en`, `pt-BR` or `zh-Hant`; `langcodes` has the registry of the codes
and the script in which each language is usually written. What a text is written in, its characters tell: `regex` has
their properties in Unicode. Nothing here is a list of languages, but for Greek's question mark.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import regex

# Scripts that write words without spaces between them. Unicode breaks their lines between ideographs and kana (ID, CJ,
# NS), between syllables (AK, AP, AS, VF, VI), or where a dictionary says (SA: Thai, Lao, Burmese, Khmer); Tibetan has a
# mark after each syllable. Lines of Hangul are broken in the same way, but its words have spaces.
_BREAKS = "".join(rf"\p{{Line_Break={name}}}" for name in ("ID", "CJ", "NS", "AK", "AP", "AS", "VF", "VI", "SA"))
UNSPACED = rf"[[\p{{L}}\p{{M}}]&&[{_BREAKS}\p{{Tibetan}}]--[\p{{Hangul}}\p{{Latin}}]]"
_HAN, _KANA, _HANGUL = r"\p{Han}", r"[\p{Hiragana}\p{Katakana}]", r"\p{Hangul}"
# The same scripts by ISO 15924, for languages. The first ones have no space after a sentence either.
_EAST_ASIAN = {"Hani", "Hans", "Hant", "Hanb", "Jpan", "Hira", "Kana", "Hrkt", "Bopo", "Yiii", "Tang", "Nshu"}
_SOUTH_EAST_ASIAN = {"Thai", "Laoo", "Mymr", "Khmr", "Tibt", "Lana", "Tale", "Talu", "Tavt", "Bali", "Java", "Cham"}
_WITHOUT_SPACES = _EAST_ASIAN | _SOUTH_EAST_ASIAN

LEAST_UNSPACED = 0.25  # of all letters: such a character stands for several letters of an alphabet
LEAST_KANA = 0.1  # of Han and kana: Chinese texts quote single Japanese names


def parse_code(code: str) -> str:
    """Returns a code of a language as BCP 47 writes it: `zh-CN` for `zh_cn`, `zh` for `zho`, `ZH` and `cmn`.

    Raises:
        ValueError: no code, or one of an unknown language.
    """
    import langcodes

    try:
        language = langcodes.Language.get(code).prefer_macrolanguage()
        known = language.language is not None and language.is_valid()
    except ValueError:
        known = False
    if not known:
        raise ValueError(f"unknown language {code!r}: give a code of BCP 47, such as en, de, zh-CN or pt-BR")
    return str(language.to_tag())


@cache
def base_language(code: str) -> str:
    """Returns the language of a code without script and region: `pt` of `pt-BR`; an unknown code as it is."""
    try:
        return parse_code(code).split("-")[0]
    except ValueError:
        return code


@cache
def usual_script(code: str) -> str:
    """Returns the script that a language is usually written in, by its code of ISO 15924; empty if it is not known."""
    import langcodes

    try:
        return langcodes.Language.get(parse_code(code)).maximize().script or ""
    except ValueError:
        return ""


def has_spaces(code: str) -> bool:
    """Tells whether the words of a language have spaces between them; true for an unknown one."""
    return usual_script(code) not in _WITHOUT_SPACES


def has_space_after_sentence(code: str) -> bool:
    """Tells whether the sentences of a language have spaces between them, as in Thai; not so in Chinese and Japanese.

    True for an unknown language.
    """
    return usual_script(code) not in _EAST_ASIAN


@cache
def pattern(expression: str) -> Any:
    """Compiles an expression of `regex` with set operations, once a process."""
    return regex.compile(expression, regex.V1)


class TextLanguage(NamedTuple):
    """The language of texts in a script without spaces, or of Korean."""

    code: str  # empty if the script does not tell
    name: str  # for messages
    share: float  # of the letters, 0 to 1


def language_of_texts(texts: Iterable[str]) -> TextLanguage | None:
    """Tells the language of texts whose script has no spaces between words, or is Hangul; None for all other texts."""
    letters: Counter[str] = Counter()
    total = 0
    for text in texts:
        if text.isascii():
            total += sum(map(str.isalpha, text))
            continue
        total += len(pattern(r"\p{L}").findall(text))
        letters.update(pattern(rf"[{UNSPACED}{_HANGUL}]&&\p{{L}}".join("[]")).findall(text))
    han, kana, hangul = (
        sum(number for letter, number in letters.items() if pattern(script).match(letter))
        for script in (_HAN, _KANA, _HANGUL)
    )
    count = letters.total()
    if count <= LEAST_UNSPACED * total:
        return None
    others: Counter[str] = Counter()
    for letter, number in letters.items():
        if not pattern(rf"[{_HAN}{_KANA}{_HANGUL}]").match(letter):
            others[unicodedata.name(letter, "UNKNOWN").split()[0].capitalize()] += number
    if 2 * others.total() > count:
        ((script, number),) = others.most_common(1)
        return TextLanguage("", f"script {script}", number / total)
    if hangul > han + kana:
        return TextLanguage("ko", "language 'ko'", hangul / total)
    code = "ja" if kana > LEAST_KANA * (han + kana) else "zh"
    return TextLanguage(code, f"language {code!r}", (han + kana) / total)


def is_other_alphabet(texts: Iterable[str]) -> bool:
    """Tells whether more than a quarter of the letters of some texts are of other scripts than Latin."""
    other = total = 0
    for text in texts:
        total += sum(map(str.isalpha, text))
        other += 0 if text.isascii() else len(pattern(r"[\p{L}--\p{Latin}]").findall(text))
    return other > LEAST_UNSPACED * total


def join_pieces(pieces: Iterable[str]) -> str:
    """Returns pieces of a text that was cut anywhere, with spaces between them where its script has spaces.

    Between two letters or wide marks of scripts without spaces there is none. White space becomes a space.
    """
    text, unspaced = "", rf"[{UNSPACED}[{_WIDE}&&\p{{P}}]]"
    for piece in pieces:
        piece = " ".join(piece.split())
        is_apart = text and piece and not pattern(rf"{unspaced}{{2}}").fullmatch(text[-1] + piece[0])
        text += (" " if is_apart else "") + piece
    return text


def separate_unspaced(text: str) -> str:
    """Puts a space on each side of a character of a script without spaces between words, with its marks."""
    return text if text.isascii() else str(pattern(rf"[{UNSPACED}&&\p{{L}}]\p{{M}}*+").sub(r" \g<0> ", text))


def words_of(text: str) -> list[str]:
    """Returns the words of a text in lower case: runs of letters, marks and digits.

    A character of a script without spaces between words is a word, with its marks. Characters that nothing shows, such
    as the joiners in Persian words, are left out. Composed and decomposed accents are the same.
    """
    text = unicodedata.normalize("NFC", text)
    if not text.isascii():
        text = pattern(r"\p{Default_Ignorable_Code_Point}+").sub("", text)
    word = rf"[{UNSPACED}&&\p{{L}}]\p{{M}}*+|[[\p{{L}}\p{{M}}\p{{N}}]--{UNSPACED}]++"
    return list(pattern(word).findall(text.lower()))


# What may follow the end mark of a sentence: quotation marks and brackets; in French after a space. A mark such as “
# closes in German and opens in Chinese; where no space has to follow a sentence, it closes before one only.
_CLOSE = r"""(?:["'\p{Pe}\p{Pf}\p{Pi}]|[ \xa0\u202f][»›](?=\s|$))"""
_OWN_CLOSE = r"""(?:["'\p{Pe}\p{Pf}]|\p{Pi}(?=\s|$)|[ \xa0\u202f][»›](?=\s|$))"""
_WIDE = r"[\p{East_Asian_Width=W}\p{East_Asian_Width=F}\p{East_Asian_Width=H}]"
#: End marks of one script only, such as the danda, and wide ones: no space has to follow.
_OWN = (
    rf"[[\p{{Sentence_Terminal}}&&{_WIDE}]--\p{{Sentence_Break=ATerm}}]",
    r"[[\p{Sentence_Terminal}--\p{Script_Extensions=Zyyy}]--\p{Script_Extensions=Arab}]",
    r"[\p{Terminal_Punctuation}&&\p{Tibetan}]",
)
_OWN_MARKS = f"[{''.join(_OWN)}]"
#: The others stand in numbers and abbreviations, too, or are written twice: a space has to follow. Greek has two more.
_SHARED_MARKS, _GREEK_MARKS = (rf"[…{more}[\p{{Sentence_Terminal}}--{_OWN_MARKS}]]" for more in ("", ";\u037e"))
_WIDE_STOPS = rf"[\p{{Sentence_Break=ATerm}}&&{_WIDE}]"
_WIDE_STOP = rf"(?<!{_WIDE_STOPS}){_WIDE_STOPS}++(?![\p{{N}}\p{{Latin}}]){_OWN_CLOSE}*+\s*"
_OTHER_ENDS = rf"(?<!{_OWN_MARKS}){_OWN_MARKS}++(?!(?<!{_WIDE})\p{{N}}){_OWN_CLOSE}*+\s*|{_WIDE_STOP}"
#: An end of a sentence, with the white space after it.
_END, _GREEK_END = (rf"(?<!{marks}){marks}++{_CLOSE}*+\s+|{_OTHER_ENDS}" for marks in (_SHARED_MARKS, _GREEK_MARKS))

# A text without these has no other marks than `_FREQUENT`, which are found faster alone.
_RARE = re.compile("[\u0589-\u200f\u2024\u2025\u203c-\U0010ffff]")
_FREQUENT = re.compile("[.!?…;\u037e]")


def sentence_ends(text: str, code: str) -> Iterator[int]:
    """Yields where the sentences of a text end, each after the white space that follows; `code`: of the language.

    The marks are those of Unicode's property Sentence_Terminal, the ellipsis, and the shads of Tibetan. Greek asks with
    a semicolon.
    """
    end = pattern(_GREEK_END if base_language(code) == "el" else _END)
    if _RARE.search(text):
        yield from (match.end() for match in end.finditer(text))
        return
    last = 0
    for mark in _FREQUENT.finditer(text):
        if mark.start() >= last and (match := end.match(text, mark.start())):
            yield (last := match.end())
