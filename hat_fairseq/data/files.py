"""Reading files: lines, JSON with checked fields, hashes; and which files were read."""

import codecs
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Self

from hat_fairseq.data.compression import LONGEST_POINTER, check_pointer, decompressed
from hat_fairseq.data.text import is_blank
from hat_fairseq.options import OptionError

MAX_LINE = 100_000_000  # bytes; a document needs about 30 bytes of memory for each
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # byte order marks
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)  # finds where a value ends; `parse_json` checks it
_SPACES = re.compile(r"[ \t\r\n]*")  # of JSON
_SURROGATE = re.compile("[\ud800-\udfff]")
_inputs: ContextVar[set[Path] | None] = ContextVar("_inputs", default=None)


@contextmanager
def recorded_inputs() -> Iterator[set[Path]]:
    """Collects the paths of all files that `read_lines` opens, or `note_input` is given, until the block ends."""
    paths: set[Path] = set()
    token = _inputs.set(paths)
    try:
        yield paths
    finally:
        _inputs.reset(token)


def note_input(path: Path) -> None:
    """Records a file that is read in another way than with `read_lines`."""
    if (paths := _inputs.get()) is not None:
        paths.add(path)


def check_lfs(path: str | Path) -> None:
    """Raises ValueError for a pointer of Git LFS or git-annex; what is no regular file is not read."""
    if Path(path).is_file():
        with open(path, "rb") as file:
            check_pointer(file.read(LONGEST_POINTER), Path(path))


def read_lines(path: str | Path, longest: int = MAX_LINE) -> Iterator[tuple[int, str]]:
    """Yields the lines of a UTF-8 file, which may be compressed, as `lines_of`; ValueError also for a damaged file."""
    path = Path(path)
    note_input(path)
    with decompressed(path) as file:
        yield from lines_of(file, path, longest)


def read_columns(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yields number and columns of each line, as `read_lines`; tabs end columns, quotation marks mean nothing."""
    for number, line in read_lines(path):
        yield number, line.removesuffix("\r").split("\t")


def lines_of(file: BinaryIO, path: Path, longest: int = MAX_LINE) -> Iterator[tuple[int, str]]:
    r"""Yields `(line number from 1, line without its end)` of an open file of UTF-8.

    A line ends at `\n` and nowhere else: Python's text mode would also break at a lone `\r` and so shift every
    later row against the parallel files. A byte order mark at the start of the file is no part of its text. ValueError
    for invalid UTF-8 (file, line, byte offset), or a line of more than `longest` bytes (-1: any).
    """
    offset = 0
    try:
        read = partial(file.readline, longest + 1 if longest > 0 else -1)
        for number, raw in enumerate(iter(read, b""), start=1):
            if 0 < longest < len(raw):
                raise ValueError(
                    f"{path}:{number}: the line has more than {longest:,} bytes; a line is one document: divide it"
                )
            if number == 1 and b"\0" in raw and not raw.startswith(UTF_16):
                raise ValueError(
                    f"{path} is binary, or UTF-16 without a mark: it has null bytes; convert it to UTF-8 text"
                )
            line = raw.decode("utf-8").removesuffix("\n")
            yield number, line.removeprefix("\ufeff") if number == 1 else line
            offset += len(raw)
    except UnicodeDecodeError as error:
        if number == 1 and raw.startswith(UTF_16):
            raise ValueError(f"{path} is UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8") from error
        raise ValueError(
            f"{path}:{number}: invalid UTF-8, byte 0x{raw[error.start]:02x} at byte {offset + error.start} of the "
            f"text ({error.reason}); convert the file to UTF-8, for example with iconv"
        ) from error


def without_blank(lines: Iterable[tuple[int, str]], counts: Counter[str]) -> Iterator[tuple[int, str]]:
    """Yields the lines of JSON lines that are not blank; the others are counted."""
    for number, line in lines:
        if line.startswith("{") or not is_blank(line):
            yield number, line
        else:
            counts["blank_lines_skipped"] += 1


@contextmanager
def at(where: object, way_out: str = "") -> Iterator[None]:
    """Opens the message of every ValueError of the block with a place, and ends it with what to do."""
    try:
        yield
    except OptionError as error:
        raise error.at(where, way_out) from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}{way_out}") from error


def read_json_lines(path: str | Path, counts: Counter[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields `(line number from 1, object)` of JSON lines without blank ones, which are added to `counts`.

    ValueError as `read_lines` and `parse_object`.
    """
    for number, line in without_blank(read_lines(path), Counter() if counts is None else counts):
        yield number, parse_object(line, f"{path}:{number}")


def parse_object(line: str, where: str) -> dict[str, Any]:
    """Returns the object in a line of JSON lines; ValueError, which begins with `where`, if it has none."""
    with at(where):
        record = parse_json(line)
    if not isinstance(record, dict):
        raise ValueError(f"{where}: expected a JSON object, found {line:.60}")
    return record


def read_json(path: str | Path) -> Any:
    """Returns the value in a JSON file; ValueError as in `read_lines` and `parse_json`, with the file."""
    text = "\n".join(line for _, line in read_lines(path, longest=-1))
    with at(path):
        return parse_json(text)


def parse_json(text: str) -> Any:
    """Returns the value of a JSON text.

    Raises:
        ValueError: no JSON (NaN and Infinity are none), a number of thousands of digits, or one that is too large for
            64 bits such as 1e999, a key twice, or nested deeply.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"it has the number {constant}, which JSON does not have")

    hooks: dict[str, Any] = {"parse_constant": refuse, "parse_float": _finite}
    try:
        return json.loads(text, object_pairs_hook=_without_repeated_keys, **hooks)
    except json.JSONDecodeError as error:
        raise ValueError(f"not a JSON object ({error}); is the file cut off?") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_values(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yields place and text, without line breaks, of each item of a list, or of each of several values.

    The place is file and line, and the number of the item from 1 in a list. ValueError, with the place, for what is no
    JSON, for an item of more than `MAX_LINE` characters, and for a list that does not end.
    """
    place, number, line, counted = _after_spaces(text, 0), 0, 1, 0
    is_list = text.startswith("[", place)
    place = _after_spaces(text, place + is_list)
    while place < len(text) and not (is_list and text[place] == "]"):
        if is_list and number:
            if text[place] != ",":
                line += text.count("\n", counted, place)
                raise ValueError(f"{path}:{line}: expected a comma after item {number}, found {text[place:][:60]}")
            place = _after_spaces(text, place + 1)
        line, counted, number = line + text.count("\n", counted, place), place, number + 1
        where = f"{path}:{line}, item {number}" if is_list else f"{path}:{line}"
        end = _end_of_value(text, place, where)
        yield where, text[place:end].replace("\n", " ").replace("\r", " ")
        place = _after_spaces(text, end)
    is_whole = is_list and place < len(text)
    after = _after_spaces(text, place + is_whole)
    line += text.count("\n", counted, after)
    if is_list and not is_whole:
        raise ValueError(f"{path}:{line}: the list does not end after item {number}; is the file cut off?")
    if is_list and not is_blank(rest := text[after:]):
        raise ValueError(f"{path}:{line}: text after the end of the list: {rest.strip():.60}")


def _after_spaces(text: str, place: int) -> int:
    match = _SPACES.match(text, place)
    return place if match is None else match.end()


def _end_of_value(text: str, place: int, where: str) -> int:
    try:
        _, end = _SCANNER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{where}: not a JSON object ({error.msg} in line {error.lineno}); is the file cut off?"
        ) from error
    except RecursionError:
        raise ValueError(f"{where}: it is nested too deeply") from None
    if end - place > MAX_LINE:
        raise ValueError(f"{where}: it has more than {MAX_LINE:,} characters; divide it")
    return int(end)


def json_text(value: Any, **layout: Any) -> str:
    """Returns a value as JSON, with all characters as they are; `layout`: further arguments of `json.dumps`.

    Raises:
        ValueError: it has NaN or an infinite number, which JSON does not have.
    """
    try:
        return json.dumps(value, allow_nan=False, **{"ensure_ascii": False, **layout})
    except ValueError as error:
        raise ValueError(f"a number is NaN or infinite, which JSON does not have ({error})") from None


def is_unicode(text: str) -> bool:
    """Tells whether UTF-8 can represent it: JSON's `\\ud800` alone is no character."""
    return text.isascii() or not _SURROGATE.search(text)


def unicode_json(value: Any) -> str:
    """Returns a value as JSON that UTF-8 can represent, although a text as given may hold lone surrogates."""
    text = json_text(value)
    return text if is_unicode(text) else json_text(value, ensure_ascii=True)


def replaced_json(value: Any, **layout: Any) -> str:
    """Returns a value as JSON, with U+FFFD for each lone surrogate in it, so that UTF-8 can represent it."""
    text = json_text(value, **layout)
    return text if is_unicode(text) else _SURROGATE.sub("\ufffd", text)


def json_lines(values: Iterable[Any], **layout: Any) -> Iterator[bytes]:
    """Yields values as lines of JSON in UTF-8, with U+FFFD for lone surrogates; `layout` as of `json_text`."""
    return (replaced_json(value, **layout).encode() + b"\n" for value in values)


def _finite(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise ValueError(f"the number {digits:.60} is too large: at most {sys.float_info.max:.4g}")
    return number


def is_deeper(value: Any, levels: int) -> bool:
    """Tells whether lists and objects are in each other on more than `levels` levels."""
    inside = list(value.values()) if isinstance(value, dict) else value
    return isinstance(inside, list) and (levels < 1 or any(is_deeper(item, levels - 1) for item in inside))


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return record


def files_below(directory: Path) -> list[str]:
    """Lists the paths of all files below a directory, relative to it, sorted."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


def sha256_of(path: str | Path) -> str:
    """Returns the SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_of(path: Path) -> tuple[int, ...]:
    """Returns what is another number where a file was changed, without reading it; the same on other machines."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


_NAMES = {str: "a string", int: "a number", list: "a list", dict: "an object"}


def of_type(value: Any, kind: type, name: str) -> Any:
    """Returns a value of the type `kind`; ValueError with its name for any other. A bool is no number."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{name} must be {_NAMES[kind]}, not {value!r:.60}")
    return value


def rows_of_lists(value: Any, name: str) -> Any:
    """Returns an object of lists, in which `datasets` stores a list of objects, as this list; others as they are.

    ValueError with the name if the lists have different lengths.
    """
    if not isinstance(value, dict):
        return value
    if not all(isinstance(each, list) for each in value.values()) or len(set(map(len, value.values()))) != 1:
        raise ValueError(f"{name} must be a list, or an object of lists of one length, not {value!r:.60}")
    return [dict(zip(value, each, strict=True)) for each in zip(*value.values(), strict=True)]


class Fields:
    """A JSON object whose values are checked when they are read; a ValueError for all that is wrong.

    `where`: file and line, or the place in a file; it opens every message. `known`: the keys that it may have; None for
    any.
    """

    def __init__(self, record: Any, where: str, known: Collection[str] | None = None) -> None:
        self.where = where
        if not isinstance(record, Mapping):
            raise self.error(f"expected a JSON object, found {record!r:.60}")
        if known is not None and (unknown := sorted(record.keys() - known)):
            raise self.error(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
        self.record = record

    @classmethod
    def read(cls, path: Path, known: Collection[str] | None = None, optional: bool = False) -> Self:
        """Reads the object in a JSON file; `optional`: without a file it is empty."""
        return cls({} if optional and not path.is_file() else read_json(path), str(path), known)

    def __contains__(self, key: str) -> bool:
        return key in self.record

    def error(self, problem: str) -> ValueError:
        """Returns the problem with its place."""
        return ValueError(f"{self.where}: {problem}")

    def get(self, key: str, kind: type) -> Any:
        """Returns the value under a key, of the type `kind`: str, int, list or dict; ValueError if there is none."""
        if key not in self.record:
            raise self.error(f"there is no {key}")
        return self.checked(self.record[key], kind, key)

    def checked(self, value: Any, kind: type, name: str) -> Any:
        """Checks the type of a value as `of_type`."""
        with at(self.where):
            return of_type(value, kind, name)

    def text(self, key: str) -> str:
        """Returns the string under a key."""
        return str(self.get(key, str))

    def items(self, key: str, kind: type) -> list[Any]:
        """Returns the list under a key, all of whose items are of the type `kind`."""
        return [self.checked(item, kind, f"each item of {key}") for item in self.get(key, list)]

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns the list of strings under a key."""
        return tuple(self.items(key, str))

    def objects(self, key: str) -> "list[Fields]":
        """Returns the list of objects under a key."""
        return [Fields(item, f"{self.where}: {key}") for item in self.items(key, dict)]
