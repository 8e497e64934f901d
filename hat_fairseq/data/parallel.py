"""Parallel text, which is read in place of JSON: two files for a split, with a segment on each line.

Blank lines stand between documents. The two files are called `train.source` and `train.target`, or as fairseq's
examples name them, with both languages and their direction: `train.en-de.en` and `train.en-de.de`; they may be
compressed. The first language is the source, unless `--source-language` and `--target-language` say the reverse.
"""

import logging
import re
import sys
from collections.abc import Collection, Iterator
from itertools import groupby, zip_longest
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.language import base_language, parse_code
from hat_fairseq.data.text import is_blank

logger = logging.getLogger(__name__)

PARALLEL = "parallel text"  # the format of both files
MAX_SEGMENTS = 500  # of a file with a single document
EACH_LINE = (
    "If each line is a document, as in fairseq's examples of BART, write JSON lines of it (docs/data.md, Parallel text)"
)
_CODES = re.compile(r"^\w+\.([a-z]{2,3})-([a-z]{2,3})\.")  # of the languages, in the names of files

Languages = tuple[str | None, str | None]  # of source and target, codes of BCP 47
Pair = tuple[Path, Path]  # source and target


def read_parallel(source: Path, target: Path) -> Iterator[Document]:
    """Yields the documents of two files; their ids are the split and their number from 1: `train-1`.

    ValueError, with file and line, for different numbers of documents; for files whose last documents end on the same
    line, but others do not stand on the same lines; and for a long file without blank lines.
    """
    stem, difference = source.name.partition(".")[0], ""
    lines, number, segments = ["", ""], 0, 0
    sides: tuple[dict[int, str], dict[int, str]]
    for number, sides in enumerate(zip_longest(_documents(source), _documents(target), fillvalue={}), start=1):
        lines = [f"{min(side)}-{max(side)}" if side else "nothing" for side in sides]
        if lines[0] != lines[1] and not difference:
            difference = f"the first that differ are number {number}, {source}:{lines[0]} and {target}:{lines[1]}"
        if not all(sides):
            raise ValueError(f"{source} and {target} have different numbers of documents; {difference}")
        origin, segments = f"{source.name}:{lines[0]}, {target.name}:{lines[1]}", len(sides[0])
        source_segments, target_segments = (tuple(side.values()) for side in sides)
        yield Document(f"{stem}-{number}", sentences=source_segments, target=target_segments, origin=origin)
    if difference and lines[0].partition("-")[2] == lines[1].partition("-")[2]:
        raise ValueError(
            f"{source} and {target} have documents on different lines, but end on the same one; {difference}. "
            "A segment without translation can be given in JSON lines"
        )
    if number == 1 and segments > MAX_SEGMENTS:
        raise ValueError(
            f"{source} has {segments} lines and no blank line, so it is one document; put blank lines between "
            f"documents, or write it as a line of JSON if it is one. {EACH_LINE}"
        )
    if number == 1 and segments > 1:
        logger.warning("%s has %d lines and no blank line, so it is one document. %s", source, segments, EACH_LINE)


def _documents(path: Path) -> Iterator[dict[int, str]]:
    """The segments of each document, by the numbers of their lines."""
    for is_text, lines in groupby(read_lines(path), key=lambda line: not is_blank(line[1])):
        if is_text:
            yield {number: text.removesuffix("\r") for number, text in lines}


def in_direction(pair: Pair, languages: Languages, of_model: bool) -> Pair:
    """Returns the two files as source and target; a name such as `train.ja-en.ja` says either order.

    ValueError for languages that are neither those of the name nor the reverse, unless they are those of a model. A
    code that is none of BCP 47, such as `cn`, may be any language.
    """
    match = _CODES.search(pair[0].name)
    if match is None or languages == (None, None):
        return pair
    source, target = (code and _known_language(code) for code in languages)
    first, second = map(_known_language, match.groups())
    if _is_one(source, first) and _is_one(target, second):
        return pair
    if None not in languages and _is_one(source, second) and _is_one(target, first):
        return pair[::-1]
    if of_model:
        return pair
    flags = ((f"--{side}-language {code}", code) for side, code in zip(("source", "target"), languages, strict=True))
    raise ValueError(
        f"{' '.join(flag for flag, code in flags if code)}: {pair[0]} and {pair[1].name} are of the languages "
        f"{match[1]} and {match[2]}; give both flags, in either order, or rename the files"
    )


def languages_of(pairs: Collection[Pair], stated: Languages) -> dict[str, str]:
    """Returns the languages of pairs of files, as far as the names of all its files say the same ones, as defaults.

    Warns of names that do not, and of codes that are none, where the language of a side is not `stated`.
    """
    languages: dict[str, str] = {}
    for side, name in enumerate(("source_language", "target_language")):
        codes = {
            files[side].name.removeprefix(match[0]).partition(".")[0] if (match := _CODES.search(files[0].name)) else ""
            for files in pairs
        }
        if len(codes) == 1 and _known_language(code := next(iter(codes))) is not None:
            languages[name] = code
        elif any(codes) and stated[side] is None:
            says = " and ".join(sorted(map(repr, filter(None, codes))))
            print(
                f"warning: {says} in the names of the files is not one code of BCP 47, so the {name.partition('_')[0]} "
                f"is taken for English: say its language with --{name.replace('_', '-')}",
                file=sys.stderr,
            )
    return languages


def _known_language(code: str) -> str | None:
    """Returns the language of a code without script and region, None for an unknown one."""
    try:
        return base_language(parse_code(code))
    except ValueError:
        return None


def _is_one(language: str | None, other: str | None) -> bool:
    """Tells whether two languages are the same, as far as both are known."""
    return language is None or other is None or language == other
