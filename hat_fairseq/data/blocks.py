"""Blocks: a long computation maps a function over blocks of its input, and keeps the result of each as one file.

The name of the file is a digest of what the result is made of, and the file appears by a rename. So a run that was
killed goes on where it was: what it has finished is not done again, unless the input, an option or a version changed.
"""

import os
import shutil
import socket
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tqdm import tqdm

from hat_fairseq.workers import Workers

SIZE = 1 << 20  # characters or bytes of a block: enough to hide the cost of a file and of sending it to a process
MOST_COUNTS = 64  # results with counts that are added up: it is the work of one process
SECONDS_FOR_FILES = 60

Item = TypeVar("Item")
Parts = Mapping[str, str | bytes]  # of a result: their names and contents


class Block(NamedTuple):
    """A block of the input of a computation."""

    digest: str  # of the block and of all that the result depends on: it names the file of the result
    argument: Any  # of the function
    name: str  # for messages


def digest(*values: object) -> str:
    """Returns a digest of bytes, and of the `repr` of other values."""
    state = blake2b(digest_size=16)
    for value in values:
        content = value if isinstance(value, bytes) else repr(value).encode()
        state.update(b"%d:" % len(content) + content)
    return state.hexdigest()


def group(lines: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Yields blocks of consecutive lines, each with its place; a longer line is a block by itself."""
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


def ranges(path: Path, most: int | None = None) -> Iterator[tuple[Path, int, int]]:
    """A text file as blocks of whole lines, `most` of them: the path, and the bytes where each begins and ends."""
    with open(path, "rb") as file:
        begin, size = 0, path.stat().st_size
        step = max(SIZE, size // most) if most else SIZE
        while begin < size:
            file.seek(begin + step)
            file.readline()
            end = min(file.tell(), size)
            yield path, begin, end
            begin = end


def read_range(block: tuple[Path, int, int]) -> list[str]:
    """Returns the lines of a block of a text file."""
    path, begin, end = block
    with open(path, "rb") as file:
        file.seek(begin)
        return file.read(end - begin).decode("utf-8").removesuffix("\n").split("\n")


@dataclass(frozen=True)
class Blocks:
    """Results in a folder, each a zip archive, computed by workers. On a cluster all machines share the folder."""

    folder: Path  # absolute
    workers: Workers = field(default_factory=Workers)

    def map(self, function: Callable[[Any], Parts], blocks: Iterable[Block]) -> Iterator[Path]:
        """Yields the archive of the result of each block, in order.

        Raises:
            ValueError: an archive is not here, because its worker does not share the folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        for archive in self.workers.map(partial(_keep, self.folder, function), blocks):
            for _ in range(SECONDS_FOR_FILES):  # a shared folder may show a new file late
                if archive.exists():
                    break
                time.sleep(1)
            else:
                raise ValueError(f"{archive}, which a worker has written, is not here: use a folder of all machines")
            yield archive

    @contextmanager
    def kept_for_next_run(self, after_refusal: bool) -> Iterator[None]:
        """Removes the results at the end of the block. After an error they stay, and the next run goes on.

        `after_refusal`: also after a ValueError, by which input is refused.
        """
        try:
            yield
        except BaseException as error:
            if not any(self.folder.glob("*.zip")) or (isinstance(error, ValueError) and not after_refusal):
                shutil.rmtree(self.folder, ignore_errors=True)
            raise
        shutil.rmtree(self.folder, ignore_errors=True)


def blocks_of(out: Path, workers: Workers) -> Blocks:
    """Returns the blocks of an output, in a hidden folder beside it."""
    return Blocks(out.absolute().with_name(f".{out.name}.blocks"), workers)


def read_part(archive: Path, name: str) -> bytes:
    """Returns one part of a result."""
    with zipfile.ZipFile(archive) as parts:
        return parts.read(name)


def part_names(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as parts:
        return parts.namelist()


def _is_whole(archive: Path) -> bool:
    """Tells whether a result is there, and not damaged by a crash of the machine."""
    try:
        with zipfile.ZipFile(archive) as parts:
            return parts.testzip() is None
    except (FileNotFoundError, zipfile.BadZipFile):
        return False


def _keep(folder: Path, function: Callable[[Any], Parts], block: Block) -> Path:
    path = folder / f"{block.digest}.zip"
    if not _is_whole(path):
        unfinished = path.with_suffix(f".{socket.gethostname()}-{os.getpid()}")
        with zipfile.ZipFile(unfinished, "w") as archive:
            for part, content in function(block.argument).items():
                archive.writestr(part, content)
        unfinished.replace(path)
    return path


def progress(
    items: Iterable[Item], what: str, total: int | None = None, unit: str = "documents", every: float = 60.0
) -> Iterator[Item]:
    """Yields the items, while stderr says how many there were, and with a total how long the rest will take.

    Where stderr is no terminal, it is one line `every` so many seconds, with the name of the step, `what`.
    """
    if sys.stderr.isatty():
        yield from tqdm(items, desc=what, total=total, unit=f" {unit}", leave=False)
        return
    begin = last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if (now := time.monotonic()) - last >= every:
            last, minutes = now, (now - begin) / 60
            of, rest = (
                (f" of {total:,}", f", about {minutes / number * (total - number):.0f} min left") if total else ("", "")
            )
            print(f"{what}: {number:,}{of} {unit} in {minutes:.0f} min{rest}", file=sys.stderr, flush=True)
