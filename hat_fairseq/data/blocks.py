"""Blocks: a stage of preprocessing maps a function over blocks of lines, and keeps the result of each as one file.

The name of the file is a digest of what the result is made of, and the file appears by a rename. So a run that was
killed goes on where it was: what it has finished is not done again, unless the input, an option or a version changed.
"""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hat_fairseq.data.parallel import ordered_map

SIZE = 1 << 20  # characters or bytes of a block: enough to hide the cost of a file and of sending it to a process

Parts = Mapping[str, str | bytes]  # of a result: their names and contents


def digest(*values: object) -> str:
    """A digest of the `repr` of the values."""
    return blake2b(repr(values).encode(), digest_size=16).hexdigest()


def group(lines: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Blocks of consecutive lines, each with its place; a longer line is a block by itself."""
    block: list[tuple[str, str]] = []
    size = 0
    for where, line in lines:
        block.append((where, line))
        size += len(line)
        if size >= SIZE:
            yield block
            block, size = [], 0
    if block:
        yield block


def ranges(path: Path) -> Iterator[tuple[Path, int, int]]:
    """A text file as blocks of whole lines: the path, and the bytes at which the block begins and ends."""
    with open(path, "rb") as file:
        begin, size = 0, path.stat().st_size
        while begin < size:
            file.seek(begin + SIZE)
            file.readline()
            end = min(file.tell(), size)
            yield path, begin, end
            begin = end


def read_range(block: tuple[Path, int, int]) -> list[str]:
    """The lines of a block of a text file."""
    path, begin, end = block
    with open(path, "rb") as file:
        file.seek(begin)
        return file.read(end - begin).decode("utf-8").removesuffix("\n").split("\n")


@dataclass(frozen=True)
class Blocks:
    """Results in a folder, each a zip archive, computed by processes."""

    folder: Path
    workers: int = 1

    def map(self, function: Callable[[Any], Parts], blocks: Iterable[tuple[str, Any]]) -> Iterator[Path]:
        """The archive of the result of each block, in order. A block is its digest, and the argument of `function`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return ordered_map(partial(_keep, self.folder, function), blocks, self.workers)

    def remove(self) -> None:
        """Remove all results."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read_part(archive: Path, name: str) -> bytes:
    """One part of a result."""
    with zipfile.ZipFile(archive) as parts:
        return parts.read(name)


def part_names(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as parts:
        return parts.namelist()


def _keep(folder: Path, function: Callable[[Any], Parts], block: tuple[str, Any]) -> Path:
    name, argument = block
    path = folder / f"{name}.zip"
    if not zipfile.is_zipfile(path):  # absent, or cut off by a crash of the machine
        unfinished = path.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(unfinished, "w") as archive:
            for part, content in function(argument).items():
                archive.writestr(part, content)
        unfinished.replace(path)
    return path
