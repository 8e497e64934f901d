"""What a file of records is, by its content: JSON lines, JSON, CSV, Parquet, Arrow, or plain text.

All but Parquet and Arrow may be compressed. The end of a name decides only where the content says nothing: whether
`train.csv` with unknown columns is a damaged table, or plain text.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from hat_fairseq.data.columns import AS_NAMED, Columns
from hat_fairseq.data.compression import AT_ONCE, ENDINGS, compression_of, decompressed
from hat_fairseq.data.files import UTF_16, lines_of, note_input, parse_object, without_blank
from hat_fairseq.data.json_stream import json_texts
from hat_fairseq.data.tables import Rows, read_arrow, read_csv, read_table
from hat_fairseq.data.text import is_blank

JSON_LINES, JSON, CSV, PARQUET, ARROW, TEXT = "JSON lines", "JSON", "CSV", "Parquet", "Arrow", "plain text"
REFUSALS = {
    "UTF-16": "is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8",
    "UTF-16LE": "is UTF-16 without a mark at its beginning; convert it to UTF-8: iconv -f utf-16le -t utf-8",
    "UTF-16BE": "is UTF-16 without a mark at its beginning; convert it to UTF-8: iconv -f utf-16be -t utf-8",
    "zip": "is a zip archive or an office document (.docx, .xlsx): unpack it, or save it as text or CSV",
    "PDF": "is a PDF document: save it as text",
    "RTF": "is a document of a word processor (RTF): save it as text",
    "binary": "is neither text nor Parquet: it has null bytes",
    TEXT: "is plain text, and neither JSON nor a table whose first line names keys of records",
}
STDIN = Path("-")
NAMED = {"jsonl": JSON_LINES, "ndjson": JSON_LINES, "json": JSON_LINES, "csv": CSV, "tsv": CSV}
DELIMITERS = ",;\t|"

_OBJECT = re.compile(r"""\{\s*("|'\w+'\s*:|\}?\s*$)""")  # also what Python prints, so that it is refused
VTT_HEAD = re.compile(r"WEBVTT(?:\s|$)")  # the first line of subtitles
_LIST = re.compile(r"""\[\s*(\{|\]\s*$|"(?:[^"\\]|\\.)*"\s*[,\]])""")
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?')  # the first line that Excel writes and reads


def ending_of(name: str) -> str:
    """Returns what a name ends in, in lower case, without the end of a compression: `jsonl` of `train.JSONL.gz`."""
    path = Path(name.lower())
    return Path(path.stem if path.suffix in ENDINGS else path).suffix.removeprefix(".")


def is_saved_dataset(path: Path) -> bool:
    """Tells whether a path is a folder that `datasets` saved."""
    return path.is_dir() and any(path.glob("*.arrow"))


def format_of(head: bytes, name: str, keys: Collection[str]) -> str:
    """Returns the format of a file that begins with `head`: one of the constants above, or a key of `REFUSALS`.

    `name`: of the file; `keys`: names that the columns of a table may have.
    """
    magic = {b"PAR1": PARQUET, b"ARROW1": ARROW, b"\xff\xff\xff\xff": ARROW, b"PK\x03\x04": "zip"}
    magic |= {b"%PDF-": "PDF", rb"{\rtf": "RTF"}
    magic |= dict.fromkeys(UTF_16, "UTF-16")
    if known := next((known for begin, known in magic.items() if head.startswith(begin)), None):
        return known
    if b"\0" in head:
        return _utf16(head) or "binary"
    text = _visible(head)
    first = text.partition("\n")[0]
    if VTT_HEAD.match(first):
        return TEXT
    if first.strip() == "{" or _LIST.match(text):
        return JSON
    if _OBJECT.match(first):
        return JSON_LINES
    header = _Header.of(text, keys)
    if header.stated or header.known > 1 or (header.known and header.known == len(header.cells)):
        return CSV
    return NAMED.get(ending_of(name), TEXT)


def _utf16(head: bytes) -> str | None:
    """Which UTF-16 most bytes look like, if it has no mark at its beginning: every second one is null."""
    half = len(head) // 4
    first, second = head[::2].count(0), head[1::2].count(0)
    if half < 4 or min(first, second) > 0 or max(first, second) < half:
        return None
    return "UTF-16BE" if first else "UTF-16LE"


def _visible(head: bytes) -> str:
    """The text from the first line on that is not blank."""
    text = head.decode("utf-8", errors="ignore").removeprefix("\ufeff")
    while text and is_blank(text.partition("\n")[0]):
        text = text.partition("\n")[2]
    return text.lstrip()


@dataclass(frozen=True)
class _Header:
    """The first line of a table."""

    delimiter: str
    cells: list[str]
    known: int  # how many of the cells are names that are expected
    stated: bool = False  # whether a line above says what the delimiter is

    @classmethod
    def of(cls, text: str, keys: Collection[str]) -> "_Header":
        """Reads it with the delimiter that the line `sep=` gives, or the one that gives most known names."""
        first, _, below = text.partition("\n")
        if stated := _SEPARATOR.fullmatch(first):
            return cls._read(below, stated[1], keys, True)
        headers = [cls._read(text, delimiter, keys, False) for delimiter in DELIMITERS]
        return max(headers, key=lambda header: (header.known, len(header.cells)))

    @classmethod
    def _read(cls, text: str, delimiter: str, keys: Collection[str], stated: bool) -> "_Header":
        try:
            cells = next(csv.reader((line + "\n" for line in text.split("\n")), delimiter=delimiter), [])
        except csv.Error:
            cells = []
        return cls(delimiter, cells, len(set(cells) & set(keys)), stated)


@dataclass(frozen=True)
class DataFile:
    """A file, or a saved `datasets` folder, of which some bytes were read."""

    path: Path
    keys: Collection[str]  # names that the columns of a table may have
    file: BufferedReader | None  # of a file
    counts: Counter[str] = field(default_factory=Counter)  # of what is skipped

    @cached_property
    def head(self) -> bytes:
        return self.file.peek(AT_ONCE) if self.file is not None else b""

    @cached_property
    def format(self) -> str:
        """Says what it is; ValueError if nothing here can read it."""
        name = ARROW if self.file is None else format_of(self.head, self.path.name, self.keys)
        if name in REFUSALS and name != TEXT:
            raise ValueError(f"{self.path} {REFUSALS[name]}")
        return name

    @property
    def is_table(self) -> bool:
        return self.format in (CSV, PARQUET, ARROW)

    def rows(self, columns: Columns = AS_NAMED, keep_empty: bool = False) -> Rows:
        """Yields place and content of each record, in a table without its empty cells, or with None for each.

        ValueError with the place for what is damaged, or plain text.
        """
        if self.format in (JSON_LINES, JSON):
            objects = ((where, parse_object(text, where)) for where, text in self.json_texts())
            yield from columns.renamed(objects, self.path, self.counts)
        elif self.is_table:
            rows = columns.renamed(self._table(), self.path, self.counts)
            for where, row in read_table(rows, self.counts):
                yield where, row if keep_empty else {key: cell for key, cell in row.items() if cell is not None}
        else:
            raise ValueError(f"{self.path} {REFUSALS[self.format]}")

    def json_texts(self) -> Iterator[tuple[str, str]]:
        """Yields place and text of each record of JSON, which is not checked."""
        assert self.file is not None, self.path
        if self.format == JSON:
            yield from json_texts(self.file, self.path)
            return
        for number, line in without_blank(self.lines(), self.counts):
            yield f"{self.path}:{number}", line

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yields number and text of each line."""
        assert self.file is not None, self.path
        return lines_of(self.file, self.path)

    def _table(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self.format == CSV:
            header = _Header.of(_visible(self.head), self.keys)
            return read_csv(self.lines(), self.path, header.delimiter, header.stated)
        if self.file is not None:
            with open(self.path, "rb") as file:
                if compressed := compression_of(file.read(AT_ONCE)):
                    raise ValueError(f"{self.path} is {self.format} inside of {compressed}: unpack it")
        return read_arrow(self.path, self.format == PARQUET)


@contextmanager
def opened(path: Path, keys: Collection[str] = (), counts: Counter[str] | None = None) -> Iterator[DataFile]:
    """Opens a file of records, `-` for the standard input, or a saved `datasets` folder.

    `keys`: names that the columns of a table may have; `counts`: what is skipped is added to them.
    """
    counts = Counter() if counts is None else counts
    if path == STDIN:
        stream = DataFile(Path("standard input"), keys, cast(BufferedReader, sys.stdin.buffer), counts)
        if (compression := compression_of(stream.head)) or stream.format in (PARQUET, ARROW):
            raise ValueError(f"the standard input is {compression or stream.format}, which is read from a file only")
        yield stream
        return
    if path.is_dir():
        if not is_saved_dataset(path):
            stored = path / "text"
            inside = f", such as {stored / 'test.jsonl'}" if stored.is_dir() else ""
            raise ValueError(f"{path} is a folder, and `datasets` did not save it: name a file{inside}")
        yield DataFile(path, keys, None, counts)
        return
    note_input(path)
    with decompressed(path) as file:
        yield DataFile(path, keys, file, counts)


def read_rows(path: Path, keys: Collection[str] = (), counts: Counter[str] | None = None) -> Rows:
    """Yields place and content of each record of a file, whatever its format; see `opened` and `DataFile.rows`."""
    with opened(path, keys, counts) as file:
        yield from file.rows()
