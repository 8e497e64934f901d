"""Tables of texts: CSV, JSON lines or one JSON list, the forms in which many datasets are passed on."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields, read_json, read_json_lines, read_lines

NAMES = {"train": ("train",), "valid": ("validation", "valid", "val"), "test": ("test",)}
ENDINGS = (".csv", ".jsonl", ".json")
LONGEST_CELL = 2**24  # characters; the csv module's own limit of 131,072 is less than a long article has

Row = tuple[str, dict[str, str]]


def find_table(folder: Path, split: str, otherwise: str = "") -> Path:
    """The one file of a split, such as `validation.csv`, `val.json` or `valid.jsonl.gz` for `valid`.

    Args:
        otherwise: another form that the folder might have had, for the message.

    Raises:
        ValueError: there is none, or more than one.
    """
    files = [file for name in NAMES[split] for file in sorted(folder.glob(f"{name}.*")) if _ending(file) in ENDINGS]
    if len(files) != 1:
        name = NAMES[split][0]
        raise ValueError(
            f"{folder}: expected {otherwise}one file {name}.csv or {name}.jsonl or {name}.json (also .gz), found "
            f"{' and '.join(map(str, files)) or 'none'}"
        )
    return files[0]


def read_table(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield where it stands (file and line, or file and record) and the row, for each row of a table of texts.

    A `.json` file may hold one JSON list or one object a line.

    Raises:
        ValueError: the columns are others, a value is no string, or the file is damaged.
    """
    for where, row in _rows(path, columns):
        if row.keys() != set(columns):
            raise ValueError(f"{where}: expected an object with {', '.join(columns)}, found {', '.join(row) or 'none'}")
        fields = Fields(row, where)
        yield where, {column: fields.text(column) for column in columns}


def _ending(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if _ending(path) == ".csv":
        return _csv_rows(path, columns)
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    if _ending(path) == ".json" and first.lstrip().startswith("["):
        return _list_rows(path)
    return ((f"{path}:{number}", record) for number, record in read_json_lines(path))


def _csv_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader((line + "\n" for _, line in read_lines(path)), strict=True)
    try:
        header = next(rows, [])
        if sorted(header) != sorted(columns):
            found = ", ".join(header) or "none"
            raise ValueError(f"{path}:1: expected the columns {', '.join(columns)}, found {found}")
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if len(row) != len(header):
                raise ValueError(f"{where}: {len(row)} columns instead of {len(header)}")
            yield where, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}:{rows.line_num}: {error}; is the file cut off, or no CSV?") from error


def _list_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, record in enumerate(read_json(path), start=1):
        where = f"{path}, record {number}"
        yield where, dict(Fields(record, where).record)
