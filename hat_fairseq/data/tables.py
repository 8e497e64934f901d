"""Tables and parallel text, which are read in place of JSON.

The columns of tables are keys of records: CSV, Parquet and saved `datasets` folders. Parallel text is two files for a
split: one segment on each line, blank lines between documents.
"""

import csv
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from hat_fairseq.data.compression import decompressed
from hat_fairseq.data.files import MAX_LINE, Fields, note_input, read_lines
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.text import is_blank

logger = logging.getLogger(__name__)

ROWS_AT_ONCE = 16  # of Parquet: each may be large, and take few bytes in the file
LONGEST_CELL = 2**24  # characters; the csv module's own limit of 131,072 is less than a long article has
MAX_SEGMENTS = 500  # of a file of parallel text with a single document
UNQUOTED = "if the table does not quote cells, these are several rows: double its quotation marks, or write JSON lines"
EACH_LINE = (
    "If each line is a document, as in fairseq's examples of BART, write JSON lines of it (docs/data.md, Parallel text)"
)
STATE = "state.json"  # of a saved `datasets` folder: it names the files of the data

TAB = "\t"
_PRINTED = re.compile(r"""(array\()?\[+\s*([bu]?['"{]|array\(|np\.)|\{\s*['"]""")  # how a printed list or object begins
_NUMBERS = re.compile(r"\[\s*-?\d[\d.]*(?:[\s,]+-?\d[\d.]*)+\s*\]")
_UNNAMED = re.compile(r"Unnamed: \d+|__index_level_\d+__")  # pandas' names of columns without one, and of the index

Rows = Iterator[tuple[str, dict[str, Any]]]  # where each row stands, and its cells by column


def read_table(rows: Iterable[tuple[str, dict[str, Any]]], counts: Counter[str]) -> Rows:
    """Yields the rows without the index, and with None for empty cells; rows of nothing else are skipped and counted.

    The cell of a single column is what a row is about: an empty one is an empty text. ValueError for a column without a
    name that is no index.
    """
    blank = 0  # rows since the last one that is not blank
    for where, row in _without_index(rows, counts):
        _check_printed(row, where)
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


def _check_printed(row: dict[str, Any], where: str) -> None:
    """Raises ValueError for a cell with a list or an object, which pandas, datasets or numpy printed as a text."""
    for name, cell in row.items():
        if isinstance(cell, str) and cell[:1] in ("[", "{", "a") and is_printed(cell.strip()):
            raise ValueError(
                f"{where}: the column {name!r} has a printed list or object, {cell!r:.60}, and a cell is a text: "
                "write JSON lines, in pandas with .to_json(PATH, orient='records', lines=True), or Parquet"
            )


def is_printed(text: str) -> bool:
    """Tells whether a text is `['a', 'b']`, `["a"]`, `['a' 'b']`, `array([...])`, `[{'a': 1}]`, `{'a': 1}` or `[]`."""
    if text == "[]" or _NUMBERS.fullmatch(text):
        return True
    ends = text.endswith(("']", '"]', "]]", "}]", ")]", "])", "dtype=object)")) or (text[0] == "{" and text[-1] == "}")
    return ends and _PRINTED.match(text) is not None


def _without_index(rows: Iterable[tuple[str, dict[str, Any]]], counts: Counter[str]) -> Rows:
    """Leaves out columns without a name that are empty or hold growing whole numbers, such as those of the rows."""
    names: list[str] | None = None
    last: dict[str, int] = {}
    for where, row in rows:
        if names is None:
            names = list(filter(_UNNAMED.fullmatch, row))
            counts["unnamed_columns_left_out"] += len(names)
        for name in names:
            cell = row.pop(name)
            if cell in (None, ""):
                continue
            if not re.fullmatch(r"\d{1,18}", str(cell)) or int(cell) <= last.get(name, -1):
                raise ValueError(
                    f"{where}: the column {name!r} has no name of its own, and {str(cell)!r:.60} is no number of a "
                    f"row above the last one: give it a name, or leave it out"
                )
            last[name] = int(cell)
        yield where, row


def read_csv(lines: Iterable[tuple[int, str]], path: Path, delimiter: str = ",", below_separator: bool = False) -> Rows:
    """Yields place and cells of each row, None for those of a blank line. The names of columns are in the first one.

    `below_separator`: the first line that is not blank only says what the delimiter is. ValueError with file and line
    if the table is damaged.
    """
    csv.field_size_limit(LONGEST_CELL)
    escaped = re.compile(rf'\\"(?!["\r\n{re.escape(delimiter)}]|$)')
    rows = csv.reader(_without_backslashes(lines, path, escaped), delimiter=delimiter, strict=True)
    header: list[str] = []
    last, is_said = 0, False
    try:
        for row in rows:
            place, last = f"{path}:{last + 1}", rows.line_num  # the first line: cells may have line breaks
            blank = all(map(is_blank, row))
            if header and len(row) != len(header) and not blank:
                raise ValueError(f"{place}: {len(row)} columns instead of {len(header)}")
            if delimiter == TAB and not is_said and any(TAB in cell and "\n" in cell for cell in row):
                is_said = True
                logger.warning("%s: a cell in quotation marks has tabs and line breaks; %s", place, UNQUOTED)
            if header:
                yield place, dict(zip(header, row, strict=True)) if len(row) == len(header) else dict.fromkeys(header)
            elif below_separator and not blank:
                below_separator = False
            elif not blank:
                header = [name or f"Unnamed: {number}" for number, name in enumerate(row)]
                _check_names(header, path)
    except csv.Error as error:
        quotes = "a cell that begins with a quotation mark ends with one, and those inside are doubled"
        raise ValueError(f"{path}:{rows.line_num}: {error}; is the file cut off, or no CSV? ({quotes})") from error


def _without_backslashes(lines: Iterable[tuple[int, str]], path: Path, escaped: re.Pattern[str]) -> Iterator[str]:
    """Yields lines of CSV; ValueError for a backslash before a quotation mark inside a cell, which CSV doubles."""
    for number, line in lines:
        if '\\"' in line and escaped.search(line):
            raise ValueError(
                f"{path}:{number}: a backslash stands before a quotation mark, as Spark writes it, and CSV doubles the "
                'mark: write it so (in Spark .option("escape", "\\"")), or write JSON lines'
            )
        yield line + "\n"


def read_arrow(path: Path, is_parquet: bool) -> Rows:
    """Yields place and cells of each row of Parquet, Arrow or a saved `datasets` folder.

    Raises ValueError if it is damaged.
    """
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise ValueError(f'{path} needs the package pyarrow: pip install "hat_fairseq[data]"') from error
    number = 0
    for file in _files_of_dataset(path) if path.is_dir() else [path]:
        note_input(file)
        with decompressed(file):
            pass  # no pointer of Git LFS
        try:
            batches = parquet.ParquetFile(file).iter_batches(ROWS_AT_ONCE) if is_parquet else _arrow_batches(file, ipc)
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


def _arrow_batches(path: Path, ipc: Any) -> Iterator[Any]:
    """The batches of an Arrow file, or of an Arrow stream, which `datasets` writes."""
    with open(path, "rb") as file:
        is_stream = file.read(6) != b"ARROW1"
    if is_stream:
        yield from ipc.open_stream(path)
    else:
        batches = ipc.open_file(path)
        yield from map(batches.get_batch, range(batches.num_record_batches))


def _files_of_dataset(folder: Path) -> list[Path]:
    """The files that hold the data: others are results that `datasets` keeps beside it. ValueError if one is absent."""
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
