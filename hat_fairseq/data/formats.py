"""What a file of records, or of what people say, is: the end of its name says it.

Nothing is guessed: a file whose first bytes say something else is refused with the way out, and so is another name. The
standard input and a pipe have no such names; of these the first characters say whether they are JSON, subtitles or
text.
"""

import csv
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import Any, Self, cast

from hat_fairseq.data.columns import AS_NAMED, Columns
from hat_fairseq.data.compression import AT_ONCE, ENDINGS, compression_of, decompressed
from hat_fairseq.data.files import MAX_LINE, json_values, lines_of, note_input, parse_object, without_blank
from hat_fairseq.data.foreign import ADVICE, JSON_LINES, JSON_OVER_LINES, beginning, foreign, is_object, json_of
from hat_fairseq.data.tables import TAB, Rows, files_of_dataset, read_arrow, read_csv, read_table
from hat_fairseq.data.text import is_blank

JSON, CSV, PARQUET, ARROW = "JSON", "CSV", "Parquet", "Arrow"
PLAIN_TEXT, SUBRIP, WEBVTT = "plain text", "SubRip", "WebVTT"
FORMATS = {
    **{"jsonl": JSON_LINES, "ndjson": JSON_LINES, "json": JSON, "csv": CSV, "tsv": CSV},
    **{"parquet": PARQUET, "arrow": ARROW, "txt": PLAIN_TEXT, "srt": SUBRIP, "vtt": WEBVTT},
}
STDIN = Path("-")
DELIMITERS = ",;\t|"

CLOCK = r"\d{1,3}(?::\d{1,2})?:\d{1,2}(?:[.,]\d{1,6})?"
TIMING = re.compile(rf"[ \t]*({CLOCK})[ \t]*-->[ \t]*({CLOCK})(?:[ \t]+(.*))?")  # of a cue
FIRST = 8  # lines that show something, among which the first cue of SubRip begins
_VTT_HEAD = re.compile(r"WEBVTT(?:\s|$)")  # the first line
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?')  # the first line that Excel writes and reads


def ending_of(name: str) -> str:
    """Returns what a name ends in, in lower case, without the end of a compression: `jsonl` of `train.JSONL.gz`."""
    path = Path(name.lower())
    return Path(path.stem if path.suffix in ENDINGS else path).suffix.removeprefix(".")


def is_saved_dataset(path: Path) -> bool:
    """Tells whether a path is a folder that `datasets` saved."""
    return path.is_dir() and any(path.glob("*.arrow"))


def format_of_name(path: Path, otherwise: str | None = None) -> str:
    """Returns the format that the name of a file says; `otherwise` for another name, ValueError if that is None."""
    if (form := FORMATS.get(ending := ending_of(path.name), otherwise)) is not None:
        return form
    known = ", ".join(f".{each}" for each in FORMATS)
    advice = ADVICE.get(ending, "end the name of a plain text in .txt, and convert other files")
    name = f"a name that ends in .{ending}" if ending else "a name without an end"
    raise ValueError(f"{path}: {name} is of no format that is read, which are {known}: {advice}")


def form_of_text(text: str) -> str:
    """Returns what the beginning of a text is: JSON (of some form), WebVTT, SubRip or plain text."""
    if json_of(text):
        return JSON_LINES if is_object(text.partition("\n")[0]) else JSON
    return WEBVTT if _VTT_HEAD.match(text) else SUBRIP if has_cues(text.split("\n")) else PLAIN_TEXT


def has_cues(lines: Iterable[str]) -> bool:
    """Tells whether one of the first lines has the times of a cue; a text may show some further on."""
    first = islice(filterfalse(is_blank, lines), FIRST)
    return any(TIMING.fullmatch(line.removesuffix("\r")) for line in first)


def check_content(path: Path, head: bytes, form: str) -> None:
    """Raises ValueError for a file of this format, by its name, that begins with what is of another one."""
    if form in (PARQUET, ARROW):
        return
    what, seen = foreign(head), form_of_text(text := beginning(head))
    if what is None and seen in (JSON, JSON_LINES) and form not in (JSON, JSON_LINES):
        what = "JSON: end its name in .jsonl if each line is an object, else in .json"
    elif what is None and form == JSON_LINES and json_of(text) == JSON_OVER_LINES:
        what = "JSON over several lines, or a list: end its name in .json"
    elif what is None and seen in (SUBRIP, WEBVTT) and form != seen and (form, seen) != (WEBVTT, SUBRIP):
        what = f"{seen}: end its name in {'.srt' if seen == SUBRIP else '.vtt'}"
    if what is not None:
        raise ValueError(f"{path} is {what}")


def form_of_stream(path: Path, head: bytes, keys: Collection[str]) -> str:
    """Returns the format of the standard input or a pipe; ValueError for tables, which are read from files only."""
    compression, text = compression_of(head), beginning(head)
    if what := compression or {b"PAR1": PARQUET, b"ARRO": ARROW, b"\xff" * 4: ARROW}.get(head[:4]):
        raise ValueError(f"{path} is {what}, which is read from a file only")
    check_content(path, head, form := form_of_text(text))
    if form == PLAIN_TEXT and _Header.of(text, keys).known > 1:
        raise ValueError(f"{path} begins as a table does, which is read from a file only, whose name ends in .csv")
    return form


@dataclass(frozen=True)
class _Header:
    """The first line of a table."""

    delimiter: str
    cells: list[str]
    known: int  # how many of the cells are names that are expected
    stated: bool = False  # whether a line above says what the delimiter is

    @classmethod
    def of(cls, text: str, keys: Collection[str], delimiters: str = DELIMITERS) -> "_Header":
        """Reads it with the delimiter that the line `sep=` gives, or the one that gives most known names."""
        first, _, below = text.partition("\n")
        if stated := _SEPARATOR.fullmatch(first):
            return cls._read(below, stated[1], keys, True)
        headers = [cls._read(text, delimiter, keys, False) for delimiter in delimiters]
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
    """A file, or a folder that `datasets` saved, and its format, which its name says."""

    path: Path
    format: str | None  # None: of the standard input or a pipe, whose first characters say it when it is read

    @classmethod
    def of(cls, path: Path, otherwise: str | None = None) -> Self:
        """Returns a path with its format; ValueError for another folder, or as of `format_of_name`."""
        if path == STDIN or not path.exists():  # what is missing is an error when it is opened
            return cls(path, None)
        if path.is_dir():
            if not is_saved_dataset(path):
                stored = path / "text"
                inside = f", such as {stored / 'test.jsonl'}" if stored.is_dir() else ""
                raise ValueError(f"{path} is a folder, and `datasets` did not save it: name a file{inside}")
            return cls(path, ARROW)
        return cls(path, format_of_name(path, otherwise) if path.is_file() else None)


@dataclass(frozen=True)
class OpenFile:
    """A file, or a saved `datasets` folder, of which some bytes were read."""

    path: Path
    keys: Collection[str]  # names that the columns of a table may have
    file: BufferedReader | None  # of a file
    format: str
    counts: Counter[str] = field(default_factory=Counter)  # of what is skipped
    most: int | None = None  # bytes that are read

    @cached_property
    def head(self) -> bytes:
        return self.file.peek(AT_ONCE) if self.file is not None else b""

    @property
    def is_json(self) -> bool:
        return self.format in (JSON, JSON_LINES)

    @property
    def is_table(self) -> bool:
        return self.format in (CSV, PARQUET, ARROW)

    @property
    def is_text(self) -> bool:
        return self.format in (PLAIN_TEXT, SUBRIP, WEBVTT)

    def rows(self, columns: Columns = AS_NAMED, keep_empty: bool = False) -> Rows:
        """Yields place and content of each record, in a table without its empty cells, or with None for each.

        ValueError with the place for what is damaged, or text.
        """
        if self.is_json:
            objects = ((where, parse_object(text, where)) for where, text in self.json_texts())
            yield from columns.renamed(objects, self.path, self.counts)
        elif self.is_table:
            rows = columns.renamed(self._table(), self.path, self.counts)
            for where, row in read_table(rows, self.counts):
                yield where, row if keep_empty else {key: cell for key, cell in row.items() if cell is not None}
        else:
            raise ValueError(f"{self.path} is {self.format}, and records are JSON (.jsonl) or a table (.csv, .parquet)")

    def json_texts(self) -> Iterator[tuple[str, str]]:
        """Yields place and text of each record of JSON, which is not checked.

        A file `.json` whose first line is an object is read as JSON lines, and is never in memory whole.
        """
        lines, first = self.lines(-1 if self.format == JSON else MAX_LINE), list[tuple[int, str]]()
        for line in lines:
            first.append(line)
            if not is_blank(line[1]):
                break
        if self.format == JSON_LINES or (first and is_object(first[-1][1])):
            for number, text in without_blank(chain(first, lines), self.counts):
                yield f"{self.path}:{number}", text
        else:
            yield from json_values("".join(f"{text}\n" for _, text in chain(first, lines)), self.path)

    def lines(self, longest: int = MAX_LINE) -> Iterator[tuple[int, str]]:
        """Yields number and text of each line."""
        assert self.file is not None, self.path
        if self.most is None:
            return lines_of(self.file, self.path, longest)
        return limited(lines_of(self.file, self.path, self.most), self.path, self.most)

    def _table(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if self.format == CSV:
            delimiters = TAB if ending_of(self.path.name) == "tsv" else DELIMITERS
            header = _Header.of(beginning(self.head), self.keys, delimiters)
            return read_csv(self.lines(), self.path, header.delimiter, header.stated)
        if self.path.suffix.lower() in ENDINGS:
            raise ValueError(f"{self.path} is {self.format} inside of {ENDINGS[self.path.suffix.lower()]}: unpack it")
        files = files_of_dataset(self.path) if self.file is None else [(self.path, self.file)]
        return read_arrow(files, self.path)


@contextmanager
def opened(
    data: Path | DataFile,
    keys: Collection[str] = (),
    counts: Counter[str] | None = None,
    otherwise: str | None = None,
    most: int | None = None,
) -> Iterator[OpenFile]:
    """Opens a file of records, `-` for the standard input, or a saved `datasets` folder.

    Args:
        keys: names that the columns of a table may have.
        counts: what is skipped is added to them.
        otherwise: the format of a path with another name, which is refused if this is None.
        most: bytes of a text, unpacked; ValueError for a longer one.
    """
    data = data if isinstance(data, DataFile) else DataFile.of(data, otherwise)
    path, more = data.path, (Counter() if counts is None else counts, most)
    if path == STDIN:
        path, file = Path("standard input"), cast(BufferedReader, sys.stdin.buffer)
        yield OpenFile(path, keys, file, form_of_stream(path, file.peek(AT_ONCE), keys), *more)
    elif path.is_dir():
        yield OpenFile(path, keys, None, ARROW, *more)
    else:
        note_input(path)
        with decompressed(path) as file:
            if (form := data.format) is None:
                form = form_of_stream(path, file.peek(AT_ONCE), keys)
            else:
                check_content(path, file.peek(AT_ONCE), form)
            yield OpenFile(path, keys, file, form, *more)


def limited(lines: Iterable[tuple[int, str]], path: Path, most: int) -> Iterator[tuple[int, str]]:
    """Yields lines; ValueError where they have too many characters together."""
    size = 0
    for number, line in lines:
        size += len(line) + 1
        if size > most:
            raise ValueError(f"{path} has more than {most:,} characters, and it is read whole: divide it")
        yield number, line
