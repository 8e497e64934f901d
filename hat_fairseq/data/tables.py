"""Tables, which are read in place of JSON: CSV, Parquet and saved `datasets` folders.

The columns of tables are keys of records.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from hat_fairseq.data.compression import decompressed
from hat_fairseq.data.files import MAX_LINE, Fields, note_input
from hat_fairseq.data.text import is_blank

ROWS_AT_ONCE = 16  # of Parquet: each may be large, and take few bytes in the file
LONGEST_CELL = 2**24  # characters; the csv module's own limit of 131,072 is less than a long article has
PRINTED = (("[", "]"), ("{", "}"))  # the ends of a list or an object that pandas or datasets printed; a text here
STATE = "state.json"  # of a saved `datasets` folder: it names the files of the data

_UNNAMED = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # pandas' names of columns without one, and of the index

Rows = Iterator[tuple[str, dict[str, Any]]]  # where each row stands, and its cells by column


def read_table(rows: Iterable[tuple[str, dict[str, Any]]], counts: Counter[str]) -> Rows:
    """Yields the rows with None for empty cells; rows of nothing else are skipped and counted.

    Columns without a name, such as the index of pandas, are left out. The cell of a single column is what a row is
    about: an empty one is an empty text.
    """
    blank = 0  # rows since the last one that is not blank
    for number, (where, whole) in enumerate(rows):
        row = {name: cell for name, cell in whole.items() if not _UNNAMED.fullmatch(name)}
        counts["unnamed_columns_left_out"] += 0 if number else len(whole) - len(row)
        texts = (cell for cell in row.values() if isinstance(cell, str))
        counts["cells_with_a_printed_list"] += sum((text[:1], text[-1:]) in PRINTED for text in texts)
        cells = {key: None if isinstance(cell, str) and is_blank(cell) else cell for key, cell in row.items()}
        if len(row) == 1 and None not in row.values():
            cells = {key: "" if cell is None else cell for key, cell in cells.items()}
        if all(cell is None for cell in cells.values()):
            blank += 1
        else:
            counts["blank_rows_skipped"] += blank
            blank = 0
            yield where, cells
    counts["blank_rows_skipped"] += blank


def read_csv(lines: Iterable[tuple[int, str]], path: Path, delimiter: str = ",") -> Rows:
    """Yields place and cells of each row, None for those of a blank line. The names of columns are in the first one.

    ValueError with file and line if the table is damaged.
    """
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader((line + "\n" for _, line in lines), delimiter=delimiter, strict=True)
    header: list[str] = []
    last = 0
    try:
        for row in rows:
            place, last = f"{path}:{last + 1}", rows.line_num  # the first line: cells may have line breaks
            blank = all(map(is_blank, row))
            if header and len(row) != len(header) and not blank:
                raise ValueError(f"{place}: {len(row)} columns instead of {len(header)}")
            if header:
                yield place, dict(zip(header, row, strict=True)) if len(row) == len(header) else dict.fromkeys(header)
            elif not blank:
                header = [name or f"Unnamed: {number}" for number, name in enumerate(row)]
                _check_names(header, path)
    except csv.Error as error:
        quotes = "a cell that begins with a quotation mark ends with one, and those inside are doubled"
        raise ValueError(f"{path}:{rows.line_num}: {error}; is the file cut off, or no CSV? ({quotes})") from error


def read_arrow(files: Iterable[tuple[Path, BufferedReader]], whole: Path) -> Rows:
    """Yields place and cells of each row of open files of Parquet or Arrow, whose names say which of these they are.

    `whole`: the file, or the folder of the files, in which rows are counted. ValueError if a file is damaged.
    """
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise ValueError(f'{whole} needs the package pyarrow: pip install "hat_fairseq[data]"') from error
    number = 0
    for path, file in files:
        is_parquet = path.suffix.lower() == ".parquet"
        try:
            batches = parquet.ParquetFile(file).iter_batches(ROWS_AT_ONCE) if is_parquet else _arrow_batches(file, ipc)
            for batch in batches:
                _check_names(batch.schema.names, path)
                is_small = batch.nbytes <= MAX_LINE
                for rows in [batch] if is_small else (batch.slice(place, 1) for place in range(len(batch))):
                    if rows.nbytes > MAX_LINE:
                        raise ValueError(f"{whole}, row {number + 1}: it has more than {MAX_LINE:,} bytes; divide it")
                    for row in rows.to_pylist():
                        number += 1
                        yield f"{whole}, row {number}", row
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{path}: {error}; is the file cut off?") from error


def _arrow_batches(file: BufferedReader, ipc: Any) -> Iterator[Any]:
    """The batches of an Arrow file, or of an Arrow stream, which `datasets` writes."""
    if file.peek(6).startswith(b"ARROW1"):
        batches = ipc.open_file(file)
        yield from map(batches.get_batch, range(batches.num_record_batches))
    else:
        yield from ipc.open_stream(file)


def files_of_dataset(folder: Path) -> Iterator[tuple[Path, BufferedReader]]:
    """Opens one after another the files that hold the data: others are results that `datasets` keeps beside it.

    ValueError if one is absent.
    """
    for path in _paths_of_dataset(folder):
        note_input(path)
        with decompressed(path) as file:
            yield path, file


def _paths_of_dataset(folder: Path) -> list[Path]:
    state = Fields.read(folder / STATE, optional=True)
    if "_data_files" not in state:
        return sorted(folder.glob("*.arrow"))
    if any(value for key, value in state.record.items() if key.startswith("_indices")):
        raise ValueError(f"{folder} was saved with a selection of its rows: save it again after .flatten_indices()")
    names = [item.text("filename") for item in state.objects("_data_files")]
    if absent := [name for name in names if Path(name).name != name or not (folder / name).is_file()]:
        raise state.error(f"the file {absent[0]!r} is not in the folder; is the copy complete?")
    return [folder / name for name in names]


def _check_names(header: list[str], path: Path) -> None:
    if repeated := [name for name, count in Counter(header).items() if count > 1]:
        raise ValueError(f"{path}: the column {repeated[0]!r} occurs twice")
