"""Parallel documents as two text files: one segment on each line, blank lines between documents.

The files of a split are `train.source` and `train.target`, or named as fairseq's examples name them, with both
languages and their direction: `train.en-de.en` and `train.en-de.de`; each may end in `.gz`. From `train.en` and
`train.de` alone nobody can tell which is the source.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.formats.bitext import Side, pair
from hat_fairseq.data.record import Record

MOST_SEGMENTS = 500  # of a file with a single document


def files(folder: Path, split: str) -> tuple[Path, Path] | None:
    """Source and target file of a split, None without; ValueError for one alone, several pairs, or no direction."""
    names = {file.name.removesuffix(".gz"): file for file in sorted(folder.glob(f"{split}.*")) if file.is_file()}
    pairs = {(f"{split}.source", f"{split}.target")}
    for name in names:
        if (match := re.fullmatch(r"([a-z]{2,3})-([a-z]{2,3})\.(\1|\2)", name.removeprefix(f"{split}."))) is not None:
            stem = f"{split}.{match[1]}-{match[2]}"
            pairs.add((f"{stem}.{match[1]}", f"{stem}.{match[2]}"))
    some = sorted(both for both in pairs if any(name in names for name in both))
    if len(some) > 1:
        raise ValueError(f"{folder}: {' and '.join(map(' with '.join, some))} are two sources of {split}; remove one")
    if not some:
        _refuse_languages_alone(folder, split, list(names))
        return None
    for name in some[0]:
        if name not in names:
            raise ValueError(f"{folder / name} is missing; {' and '.join(some[0])} go together")
    return names[some[0][0]], names[some[0][1]]


def read(source: Path, target: Path, counts: Counter[str], one_document: bool = False) -> Iterator[Record]:
    """Yield the documents of two files; their ids are the split and their number from 1: `train-1`.

    Files with equally many lines are parallel line by line, so the same lines must be blank in both. Files with
    different numbers of lines need the same number of documents. Else ValueError with file and line. `one_document`: a
    long file without blank lines is meant as one document.
    """
    del counts  # nothing is left out here
    (ours, our_lines), (theirs, their_lines) = _blocks(source), _blocks(target)
    if our_lines == their_lines:
        _check_blank_lines(source, target)
    elif len(ours) != len(theirs):
        place = _first_difference(source, ours, target, theirs)
        raise ValueError(
            f"{source} has {len(ours)} documents (blank lines between them), {target} has {len(theirs)}; {place}"
        )
    if not one_document and len(ours) == 1 and ours[0][1] - ours[0][0] >= MOST_SEGMENTS:
        raise ValueError(
            f"{source} has {ours[0][1] - ours[0][0] + 1} lines and no blank line, so it is one document; put blank "
            f"lines between documents, or give --one-document if it is one"
        )
    stem = source.name.partition(".")[0]
    for number, sides in enumerate(zip(_sides(source), _sides(target), strict=True), start=1):
        yield pair(*sides, f"{stem}-{number}")


def _refuse_languages_alone(folder: Path, split: str, names: list[str]) -> None:
    languages = [name for name in names if re.fullmatch(r"[a-z]{2,3}", name.removeprefix(f"{split}."))]
    if len(languages) == 2:
        first, second = (name.rpartition(".")[2] for name in languages)
        raise ValueError(
            f"{folder}: {' and '.join(languages)} do not tell which is the source; rename them to {split}.source and "
            f"{split}.target, or to {split}.{first}-{second}.{first} and {split}.{first}-{second}.{second}"
        )


def _blocks(path: Path) -> tuple[list[tuple[int, int]], int]:
    """First and last line of each document, and the number of lines of the file."""
    return [(side.first, side.last) for side in _sides(path)], sum(1 for _ in read_lines(path))


def _sides(path: Path) -> Iterator[Side]:
    side: Side | None = None
    for number, line in read_lines(path):
        if not line.strip():
            if side is not None:
                yield side
            side = None
            continue
        side = side or Side(path, number)
        side.segments.append(line.removesuffix("\r"))
        side.last = number
    if side is not None:
        yield side


def _check_blank_lines(source: Path, target: Path) -> None:
    for (number, ours), (_, theirs) in zip(read_lines(source), read_lines(target), strict=True):
        if bool(ours.strip()) != bool(theirs.strip()):
            blank, other = (target, source) if ours.strip() else (source, target)
            raise ValueError(
                f"{blank}:{number}: this line is blank, but not in {other}; documents end at lines that are blank in "
                "both files, and a segment without translation can be given in JSON lines"
            )


def _first_difference(source: Path, ours: list[tuple[int, int]], target: Path, theirs: list[tuple[int, int]]) -> str:
    for number, (one, other) in enumerate(zip_longest(ours, theirs), start=1):
        if one is None or other is None or one[1] - one[0] != other[1] - other[0]:
            places = [
                f"{path}:{lines[0]}-{lines[1]}" if lines else f"nothing in {path}"
                for path, lines in ((source, one), (target, other))
            ]
            return f"the first that differ are number {number}: {' and '.join(places)}"
    raise AssertionError("documents that are equally long and not equally many")
