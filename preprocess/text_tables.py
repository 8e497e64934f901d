"""Tables of texts with named columns, as releases have them: CSV, JSON lines or one JSON list, columns with tabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import Fields, read_json, read_json_lines, read_lines
from hat_fairseq.data.tables import read_csv

NAMES = {"train": ("train",), "valid": ("validation", "valid", "val"), "test": ("test",)}
ENDINGS = (".csv", ".jsonl", ".json")


def find_table(folder: Path, split: str, otherwise: str = "") -> Path:
    """The one file of a split, such as `validation.csv`, `val.json` or `valid.jsonl.gz` for `valid`; else ValueError.

    `otherwise`: another form that the folder might have had, for the message.
    """
    files = [file for name in NAMES[split] for file in sorted(folder.glob(f"{name}.*")) if _ending(file) in ENDINGS]
    if len(files) != 1:
        name = NAMES[split][0]
        raise ValueError(
            f"{folder}: expected {otherwise}one file {name}.csv or {name}.jsonl or {name}.json (also .gz), found "
            f"{' and '.join(map(str, files)) or 'none'}"
        )
    return files[0]


def read_table(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield place and cells of each row of a table of texts; `.json` may be one list. ValueError for other columns."""
    for where, row in read_csv(path) if _ending(path) == ".csv" else _json_rows(path):
        if row.keys() != set(columns):
            raise ValueError(f"{where}: expected {', '.join(columns)}, and this has {', '.join(row) or 'none'}")
        fields = Fields(row, where)
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


def _json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    if _ending(path) == ".json" and first.lstrip().startswith("["):
        for number, record in enumerate(read_json(path), start=1):
            yield (where := f"{path}, record {number}"), dict(Fields(record, where).record)
    else:
        yield from ((f"{path}:{number}", record) for number, record in read_json_lines(path))
