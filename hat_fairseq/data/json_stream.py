"""JSON that goes over several lines: a list of objects, or objects one after another. It is never in memory whole."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hat_fairseq.data.files import MAX_LINE
from hat_fairseq.data.text import is_blank

AT_ONCE = 1 << 20  # bytes that are read, at least
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)  # finds where a value ends; `parse_json` checks it
_ALMOST = 10  # characters: the end of what was read may be inside a number, a literal or an escape


def json_texts(file: BinaryIO, path: Path) -> Iterator[tuple[str, str]]:
    """Yields place and text, without line breaks, of each item of a list, or of each of several values.

    The place is file and line, and the number of the item from 1 in a list. ValueError, with the place, for what is no
    JSON, for an item of more than `MAX_LINE` characters, and for a list that does not end.
    """
    text = _Text(file, path)
    is_list = text.next() == "["
    number = 0
    if is_list:
        text.skip(1)
    while (character := text.next()) and not (is_list and character == "]"):
        if is_list and number and character == ",":
            text.skip(1)
            text.next()
        elif is_list and number:
            raise ValueError(f"{text.place}: expected a comma after item {number}, found {text.rest():.60}")
        number += 1
        where = f"{text.place}, item {number}" if is_list else text.place
        yield where, text.value(where)
    if is_list:
        if not character:
            raise ValueError(f"{text.place}: the list does not end after item {number}; is the file cut off?")
        text.skip(1)
        if text.next() and not is_blank(text.rest()):
            raise ValueError(f"{text.place}: text after the end of the list: {text.rest():.60}")


class _Text:
    """What was read of a file and not yet used."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file, self.path = file, path
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self.text, self.start, self.line = "", 0, 1  # `line`: the number of the line that `start` is in
        self.bytes = 0

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def more(self) -> bool:
        """Reads on; tells whether there was anything left."""
        unused = self.text[self.start :]
        content = self.file.read(max(AT_ONCE, len(unused)))
        pending = len(self.decoder.getstate()[0])
        try:
            self.text, self.start = unused + self.decoder.decode(content, final=not content), 0
        except UnicodeDecodeError as error:
            byte = self.bytes - pending + error.start
            raise ValueError(f"{self.path}: invalid UTF-8 at byte {byte}; convert the file to UTF-8") from error
        self.bytes += len(content)
        return bool(content)

    def next(self) -> str:
        """Skips white space; returns the character after it, or an empty string at the end of the file."""
        while True:
            rest = self.text[self.start : self.start + 100]
            if stripped := rest.lstrip():
                self.skip(len(rest) - len(stripped))
                return stripped[0]
            self.skip(len(rest))
            if self.start >= len(self.text) and not self.more():
                return ""

    def skip(self, characters: int) -> None:
        """Counts characters as used."""
        self.line += self.text.count("\n", self.start, self.start + characters)
        self.start += characters

    def rest(self) -> str:
        """Returns some of what comes next."""
        return self.text[self.start : self.start + AT_ONCE]

    def value(self, where: str) -> str:
        """Returns the text of the value that comes next."""
        while True:
            try:
                _, end = _SCANNER.raw_decode(self.text, self.start)
                break
            except json.JSONDecodeError as error:
                cut_off = "Unterminated string" in error.msg or error.pos >= len(self.text) - _ALMOST
                if len(self.text) - self.start > MAX_LINE:
                    raise ValueError(f"{where}: it has more than {MAX_LINE:,} characters; divide it") from error
                if not cut_off or not self.more():
                    problem = json.JSONDecodeError(error.msg, self.text[self.start :], max(0, error.pos - self.start))
                    raise ValueError(f"{where}: not a JSON object ({problem}); is the file cut off?") from error
            except RecursionError:
                raise ValueError(f"{where}: it is nested too deeply") from None
        value = self.text[self.start : end].replace("\n", " ").replace("\r", " ")
        self.skip(end - self.start)
        return value
