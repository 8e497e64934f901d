"""Tables whose columns are the keys of records: CSV, Parquet, and the folders that Hugging Face's `datasets` saves."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import note_input, read_lines
from hat_fairseq.data.formats.tables import LONGEST_CELL

#: What a split's file may end in, besides the endings of JSON lines.
ENDINGS = (".csv", ".csv.gz", ".parquet")

Rows = Iterator[tuple[str, dict[str, Any]]]


def is_table(path: Path) -> bool:
    """Whether a path is a table, or a folder with one."""
    return path.name.endswith(ENDINGS) or (path.is_dir() and any(path.glob("*.arrow")))


def read_rows(path: Path) -> Rows:
    """Yield the place and the object of each row; empty cells are left out.

    Raises:
        ValueError: the file is damaged, a row has another number of cells, or the package pyarrow is missing.
    """
    rows = _csv_rows(path) if path.name.endswith((".csv", ".csv.gz")) else _arrow_rows(path)
    for where, row in rows:
        yield where, {key: value for key, value in row.items() if value not in (None, "")}


def _csv_rows(path: Path) -> Rows:
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader((line + "\n" for _, line in read_lines(path)), strict=True)
    try:
        header = _checked(next(rows, []), path)
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"{path}:{rows.line_num}: {len(row)} columns instead of {len(header)}")
            yield f"{path}:{rows.line_num}", dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise ValueError(f"{path}:{rows.line_num}: {error}; is the file cut off, or no CSV?") from error


def _checked(header: list[str], path: Path) -> list[str]:
    """The header; ValueError for a name that occurs twice."""
    if twice := [name for number, name in enumerate(header) if name in header[:number]]:
        raise ValueError(f"{path}: the column {twice[0]!r} occurs twice")
    return header


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
            batches = ipc.open_stream(file) if path.is_dir() else parquet.ParquetFile(file).iter_batches(1000)
            for batch in batches:
                _checked(batch.schema.names, file)
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{file}: {error}; is the file cut off?") from error
