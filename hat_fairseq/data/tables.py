"""Tables with named columns: CSV, Parquet, saved `datasets` folders, JSON lines or one JSON list, columns with tabs."""

import csv
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import MAX_LINE, Fields, note_input, read_json, read_json_lines, read_lines

#: What the file of a split may end in, besides the endings of JSON lines, if its columns are the keys of records.
ENDINGS = (".csv", ".csv.gz", ".parquet")
NAMES = {"train": ("train",), "valid": ("validation", "valid", "val"), "test": ("test",)}  # of tables of texts
TABLES = (".csv", ".jsonl", ".json")
ROWS_AT_ONCE = 16  # of Parquet: each may be large, and take few bytes in the file
LONGEST_CELL = 2**24  # characters; the csv module's own limit of 131,072 is less than a long article has

Rows = Iterator[tuple[str, dict[str, Any]]]  # where each row stands, and its cells by column


def is_table(path: Path) -> bool:
    """Tells whether a path is a table of records, or a folder with one."""
    return path.name.endswith(ENDINGS) or (path.is_dir() and any(path.glob("*.arrow")))


def read_rows(path: Path) -> Rows:
    """Yield place and object of each row of a table of records, without empty cells; ValueError if it is damaged."""
    rows = _csv_rows(path) if path.name.endswith((".csv", ".csv.gz")) else _arrow_rows(path)
    for where, row in rows:
        yield where, {key: value for key, value in row.items() if value not in (None, "")}


def find_table(folder: Path, split: str, otherwise: str = "") -> Path:
    """The one file of a split, such as `validation.csv`, `val.json` or `valid.jsonl.gz` for `valid`; else ValueError.

    `otherwise`: another form that the folder might have had, for the message.
    """
    files = [file for name in NAMES[split] for file in sorted(folder.glob(f"{name}.*")) if _ending(file) in TABLES]
    if len(files) != 1:
        name = NAMES[split][0]
        raise ValueError(
            f"{folder}: expected {otherwise}one file {name}.csv or {name}.jsonl or {name}.json (also .gz), found "
            f"{' and '.join(map(str, files)) or 'none'}"
        )
    return files[0]


def read_table(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and cells of each row of a table of texts; `.json` may be one list. ValueError for other columns."""
    for where, row in _csv_rows(path, columns) if _ending(path) == ".csv" else _json_rows(path):
        fields = Fields(row, where)
        _check_columns(row, columns, f"{where}: expected an object with")
        yield where, {column: fields.text(column) for column in columns}


def read_tsv(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the wanted columns of each row; quotes are characters like any other.

    The file may have other columns as well. A row may end early if only columns that are not wanted are missing.
    ValueError with file and line if the first line does not name the columns, or a row has too few or too many.
    """
    header: list[str] = []
    for number, line in read_lines(path):
        fields = line.removesuffix("\r").split("\t")
        if number == 1:
            header = fields
            if missing := [column for column in columns if column not in header]:
                raise ValueError(f"{path}:1: no column {missing[0]!r}; the columns are {', '.join(header):.200}")
            places = {column: header.index(column) for column in columns}
            continue
        if not max(places.values()) < len(fields) <= len(header):
            raise ValueError(
                f"{path}:{number}: {len(fields)} columns, the first line names {len(header)}; is the file cut off?"
            )
        yield number, {column: fields[place] for column, place in places.items()}
    if not header:
        raise ValueError(f"{path} is empty")


def _ending(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix


def _csv_rows(path: Path, columns: Sequence[str] = ()) -> Rows:
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader((line + "\n" for _, line in read_lines(path)), strict=True)
    try:
        _check_names(header := next(rows, []), path)
        if columns:
            _check_columns(header, columns, f"{path}:1: expected the columns")
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{path}:{rows.line_num}: {len(row)} columns instead of {len(header)}")
            yield f"{path}:{rows.line_num}", dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}:{rows.line_num}: {error}; is the file cut off, or no CSV?") from error


def _json_rows(path: Path) -> Rows:
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    if _ending(path) == ".json" and first.lstrip().startswith("["):
        for number, record in enumerate(read_json(path), start=1):
            yield (where := f"{path}, record {number}"), dict(Fields(record, where).record)
    else:
        yield from ((f"{path}:{number}", record) for number, record in read_json_lines(path))


def _arrow_rows(path: Path) -> Rows:
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
                parts = [batch] if batch.nbytes <= MAX_LINE else [batch.slice(n, 1) for n in range(len(batch))]
                for part in parts:
                    if part.nbytes > MAX_LINE:
                        raise ValueError(f"{path}, row {number + 1}: it has more than {MAX_LINE:,} bytes; divide it")
                    for row in part.to_pylist():
                        number += 1
                        yield f"{path}, row {number}", row
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{file}: {error}; is the file cut off?") from error


def _check_columns(names: Collection[str], columns: Sequence[str], expected: str) -> None:
    if sorted(names) != sorted(columns):
        raise ValueError(f"{expected} {', '.join(columns)}, found {', '.join(names) or 'none'}")


def _check_names(header: list[str], path: Path) -> None:
    if twice := [name for number, name in enumerate(header) if name in header[:number]]:
        raise ValueError(f"{path}: the column {twice[0]!r} occurs twice")
