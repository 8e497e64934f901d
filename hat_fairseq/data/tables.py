"""Tables and parallel text, which are read in place of JSON lines.

The columns of tables are keys of records: CSV, Parquet and saved `datasets` folders. Parallel text is two files for a
split: one segment on each line, blank lines between documents.
"""

import csv
from collections.abc import Iterator
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import MAX_LINE, note_input, read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.text import is_blank

TABLES = (".csv", ".csv.gz", ".parquet")  # what files of tables end in
ROWS_AT_ONCE = 16  # of Parquet: each may be large, and take few bytes in the file
LONGEST_CELL = 2**24  # characters; the csv module's own limit of 131,072 is less than a long article has
MAX_SEGMENTS = 500  # of a file of parallel text with a single document

Rows = Iterator[tuple[str, dict[str, Any]]]  # where each row stands, and its cells by column


def is_table(path: Path) -> bool:
    """Tells whether a path is a table of records, or a folder with one."""
    return path.name.endswith(TABLES) or (path.is_dir() and any(path.glob("*.arrow")))


def read_table(path: Path) -> Rows:
    """Yields the rows, with None for empty cells; ValueError for a damaged file."""
    rows = read_csv(path) if path.name.endswith((".csv", ".csv.gz")) else _read_arrow(path)
    for where, row in rows:
        yield where, {key: None if isinstance(cell, str) and is_blank(cell) else cell for key, cell in row.items()}


def read_csv(path: Path) -> Rows:
    """Yield place and cells of each row; ValueError with file and line if it is damaged."""
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader((line + "\n" for _, line in read_lines(path)), strict=True)
    try:
        _check_names(header := next(rows, []), path)
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{path}:{rows.line_num}: {len(row)} columns instead of {len(header)}")
            yield f"{path}:{rows.line_num}", dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}:{rows.line_num}: {error}; is the file cut off, or no CSV?") from error


def _read_arrow(path: Path) -> Rows:
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise ValueError(f'{path} needs the package pyarrow: pip install "hat_fairseq[tables]"') from error
    number = 0
    for file in sorted(path.glob("*.arrow")) if path.is_dir() else [path]:
        note_input(file)
        try:
            batches = ipc.open_stream(file) if path.is_dir() else parquet.ParquetFile(file).iter_batches(ROWS_AT_ONCE)
            for batch in batches:
                _check_names(batch.schema.names, file)
                whole = batch.nbytes <= MAX_LINE
                for rows in [batch] if whole else (batch.slice(place, 1) for place in range(len(batch))):
                    if rows.nbytes > MAX_LINE:
                        raise ValueError(f"{path}, row {number + 1}: it has more than {MAX_LINE:,} bytes; divide it")
                    for row in rows.to_pylist():
                        number += 1
                        yield f"{path}, row {number}", row
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{file}: {error}; is the file cut off?") from error


def _check_names(header: list[str], path: Path) -> None:
    if repeated := [name for number, name in enumerate(header) if name in header[:number]]:
        raise ValueError(f"{path}: the column {repeated[0]!r} occurs twice")


def read_parallel(source: Path, target: Path) -> Iterator[Document]:
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
    for is_text, lines in groupby(read_lines(path), key=lambda line: not is_blank(line[1])):
        if is_text:
            yield {number: text.removesuffix("\r") for number, text in lines}
