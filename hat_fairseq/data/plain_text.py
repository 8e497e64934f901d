"""Parallel documents as two text files: one segment on each line, blank lines between documents.

The files of a split are `train.source` and `train.target`, or named as fairseq's examples name them, with both
languages and their direction: `train.en-de.en` and `train.en-de.de`; each may end in `.gz`.
"""

import re
from collections.abc import Iterator
from itertools import groupby, zip_longest
from pathlib import Path

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.kinds import Document

MAX_SEGMENTS = 500  # of a file with a single document


def files(folder: Path, split: str) -> tuple[Path, Path] | None:
    """Finds source and target file of a split, None without; ValueError for one alone or several pairs."""
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
        return None
    for name in some[0]:
        if name not in names:
            raise ValueError(f"{folder / name} is missing; {' and '.join(some[0])} go together")
    return names[some[0][0]], names[some[0][1]]


def read(source: Path, target: Path) -> Iterator[Document]:
    """Yield the documents of two files; their ids are the split and their number from 1: `train-1`.

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
            "documents, or write it as a line of JSON if it is one"
        )


def _documents(path: Path) -> Iterator[dict[int, str]]:
    """The segments of each document, by the numbers of their lines."""
    for is_text, lines in groupby(read_lines(path), key=lambda line: bool(line[1].strip())):
        if is_text:
            yield {number: text.removesuffix("\r") for number, text in lines}
