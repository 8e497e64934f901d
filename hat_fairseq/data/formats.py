"""What a file of records, or of what people say, is: the end of its name says it.

Another name is refused. The standard input and a pipe have no such names; of these the first characters say whether
they are JSON, subtitles or text.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import Any, Self, cast

from hat_fairseq.data.columns import AS_NAMED, Columns
from hat_fairseq.data.compression import AT_ONCE, ENDINGS, decompressed
from hat_fairseq.data.files import MAX_LINE, json_values, lines_of, note_input, parse_object, without_blank
from hat_fairseq.data.tables import Rows, files_of_dataset, read_arrow, read_csv, read_table
from hat_fairseq.data.text import is_blank

JSON, JSON_LINES, CSV, PARQUET, ARROW = "JSON", "JSON lines", "CSV", "Parquet", "Arrow"
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
_JSON = re.compile(r"""\{\s*(".*?"\s*:|\}?\s*$)|\[\s*([{"\]]|$)""", re.MULTILINE)


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
    name = f"a name that ends in .{ending}" if ending else "a name without an end"
    advice = "end the name of a plain text in .txt, and convert other files"
    raise ValueError(f"{path}: {name} is of no format that is read, which are {known}: {advice}")


def form_of_text(text: str) -> str:
    """Returns what the beginning of a text is: JSON (of some form), WebVTT, SubRip or plain text."""
    if _JSON.match(text):
        return JSON_LINES if is_object(text.partition("\n")[0]) else JSON
    return WEBVTT if _VTT_HEAD.match(text) else SUBRIP if has_cues(text.split("\n")) else PLAIN_TEXT


def has_cues(lines: Iterable[str]) -> bool:
    """Tells whether one of the first lines has the times of a cue; a text may show some further on."""
    first = islice(filterfalse(is_blank, lines), FIRST)
    return any(TIMING.fullmatch(line.removesuffix("\r")) for line in first)


def beginning(head: bytes) -> str:
    """Returns the text of some bytes from the first character on that is no white space."""
    return head.decode("utf-8", errors="ignore").lstrip("\ufeff\u200b \t\r\n")


def is_object(line: str) -> bool:
    """Tells whether a line is a whole object of JSON."""
    try:
        return line.lstrip().startswith("{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


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
            header = beginning(self.head).partition("\n")[0]
            delimiter = "\t" if ending_of(self.path.name) == "tsv" else max(DELIMITERS, key=header.count)
            return read_csv(self.lines(), self.path, delimiter)
        if self.path.suffix.lower() in ENDINGS:
            raise ValueError(f"{self.path} is {self.format}, compressed once more: unpack it")
        files = files_of_dataset(self.path) if self.file is None else [(self.path, self.file)]
        return read_arrow(files, self.path)


@contextmanager
def opened(
    data: Path | DataFile,
    counts: Counter[str] | None = None,
    otherwise: str | None = None,
    most: int | None = None,
) -> Iterator[OpenFile]:
    """Opens a file of records, `-` for the standard input, or a saved `datasets` folder.

    Args:
        counts: what is skipped is added to them.
        otherwise: the format of a path with another name, which is refused if this is None.
        most: bytes of a text, unpacked; ValueError for a longer one.
    """
    data = data if isinstance(data, DataFile) else DataFile.of(data, otherwise)
    path, more = data.path, (Counter() if counts is None else counts, most)
    if path == STDIN:
        path, file = Path("standard input"), cast(BufferedReader, sys.stdin.buffer)
        yield OpenFile(path, file, form_of_text(beginning(file.peek(AT_ONCE))), *more)
    elif path.is_dir():
        yield OpenFile(path, None, ARROW, *more)
    else:
        note_input(path)
        with decompressed(path) as file:
            yield OpenFile(path, file, data.format or form_of_text(beginning(file.peek(AT_ONCE))), *more)


def limited(lines: Iterable[tuple[int, str]], path: Path, most: int) -> Iterator[tuple[int, str]]:
    """Yields lines; ValueError where they have too many characters together."""
    size = 0
    for number, line in lines:
        size += len(line) + 1
        if size > most:
            raise ValueError(f"{path} has more than {most:,} characters, and it is read whole: divide it")
        yield number, line
