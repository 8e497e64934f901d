"""Blocks: a long computation maps a function over parts of its input, and keeps the result of each as one file.

The name of the file is a digest of what the result is made of, and the file appears by a rename. So a run that was
killed resumes: what it has finished is not done again, unless the input, an option, a version or a source
changed.
"""

import gc
import json
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import uuid4

from hat_fairseq.data.files import json_text, sha256_of
from hat_fairseq.data.long_input import group_within
from hat_fairseq.data.outputs import named_errors
from hat_fairseq.versions import digest, versions
from hat_fairseq.workers import Workers

SIZE = 1 << 20  # characters or bytes of a block: enough to hide the cost of a file and of sending it to a process
SECONDS_FOR_FILES = 60
NAMED = 8  # files that a message names
MANY_OBJECTS = 100_000  # new ones before Python looks for cycles: rows are many small objects without cycles
RESULT = re.compile(r"[0-9a-f]{32}\.(zip|[0-9a-f]{32}\.partial)")  # the names of our files, also of unfinished ones


class Task(NamedTuple):
    """A part of the input of a computation."""

    digest: str  # of the part and of all that the result depends on besides `versions()`
    argument: Any  # of the function
    name: str  # for messages


@dataclass(frozen=True)
class Block:
    """What a function has made of a part of the input; an archive keeps it.

    Attributes:
        headers: what is compared between records, for each of them.
        records: what a later function reads, as JSON, which is parsed only there.
        figures: what is added up, by names.
        files: pieces of files, by their names.
        archive: where it is kept.
    """

    headers: Sequence[Any] = ()
    records: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    archive: Path | None = field(default=None, compare=False)

    def save(self, path: Path) -> None:
        """Writes a new archive."""
        with zipfile.ZipFile(path, "x") as archive:
            archive.writestr("about", json_text([self.headers, self.figures, [*self.files]], ensure_ascii=True))
            archive.writestr("records", self.records)
            for number, content in enumerate(self.files.values()):
                archive.writestr(f"file {number}", content)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Reads an archive; BadZipFile for one that is damaged."""
        with zipfile.ZipFile(path) as archive:
            headers, figures, names = json.loads(archive.read("about"))
            files = {name: archive.read(f"file {number}") for number, name in enumerate(names)}
            return cls(headers, archive.read("records").decode(), figures, files, path)


def tasks_of_lines(lines: Iterable[tuple[str, str]], key: str) -> Iterator[Task]:
    """Yields raw records, which are lines with their places, in parts; `key`: as for `tasks_of_text`."""
    for group in group_within(lines, lambda line, _: (len(line[1]),), (SIZE,)):
        places = [where for where, _ in group]
        content = "\n".join(line for _, line in group).encode()  # one object: cheap to send
        name = f"{len(group)} records from {places[0] or json.loads(group[0][1])['id']}"
        yield Task(digest(key, places, content), (places, content), name)


def tasks_of_text(text: Path, key: object) -> Iterator[Task]:
    """Yields a text in parts of whole lines; `key`: what the result depends on besides the text."""
    name, size, begin = digest(sha256_of(text), key), text.stat().st_size, 0
    with open(text, "rb") as file:
        while begin < size:
            file.seek(begin + SIZE)
            file.readline()
            end = min(file.tell(), size)
            yield Task(f"{name}.{begin}-{end}", (text, begin, end), f"{text}, bytes {begin} to {end}")
            begin = end


@dataclass(frozen=True)
class Blocks:
    """Results in a folder, each a zip archive, computed by workers. On a cluster all machines share the folder.

    Files of others in the folder stay there.
    """

    folder: Path  # absolute
    workers: Workers = field(default_factory=Workers)
    sources: str = ""  # digest of other people's code that the results depend on

    def map(self, function: Callable[[Any], Block], tasks: Iterable[Task]) -> Iterator[Block]:
        """Yields the block that is made of each task, in order.

        Raises:
            ValueError: an archive is not here, because its worker does not share the folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        key = digest(versions(), self.sources)  # the layout of archives is part of our sources
        keyed = (task._replace(digest=digest(key, task.digest)) for task in tasks)
        for archive in self.workers.map(partial(_keep, self.folder, function), keyed):
            for _ in range(SECONDS_FOR_FILES):  # a shared folder may show a new file late
                if archive.exists():
                    break
                time.sleep(1)
            else:
                raise ValueError(f"{archive}, which a worker has written, is not here: use a folder of all machines")
            yield Block.open(archive)

    @contextmanager
    def kept_for_next_run(self, after_refusal: bool) -> Iterator[None]:
        """Removes the results at the end of the block. After an error they stay, and the next run goes on.

        `after_refusal`: also after a ValueError, by which input is refused.
        """
        try:
            yield
        except BaseException as error:
            if not self.finished() or (isinstance(error, ValueError) and not after_refusal):
                self.remove()
            raise
        self.remove()

    def finished(self) -> list[Path]:
        """Lists the results."""
        return [path for path in self.folder.glob("*.zip") if RESULT.fullmatch(path.name)]

    def remove(self) -> None:
        """Removes the results, and the folder if it has nothing else."""
        if not self.folder.is_dir():
            return
        others = []
        for path in self.folder.iterdir():
            if RESULT.fullmatch(path.name) and path.is_file():
                path.unlink(missing_ok=True)
            else:
                others.append(path.name)
        if others:
            names = f"{', '.join(sorted(others)[:NAMED])}{', ...' if len(others) > NAMED else ''}"
            print(f"{self.folder} stays, because it has other files: {names}", file=sys.stderr)
        else:
            with suppress(OSError):  # a link, or a worker that is ending has written once more
                self.folder.rmdir()


def blocks_of(out: Path, workers: Workers, sources: str = "") -> Blocks:
    """Returns the blocks of an output, in a hidden folder beside it; `sources`: see `Blocks`."""
    return Blocks(out.absolute().with_name(f".{out.name}.blocks"), workers, sources)


def _keep(folder: Path, function: Callable[[Any], Block], task: Task) -> Path:
    gc.set_threshold(MANY_OBJECTS)
    path = folder / f"{task.digest}.zip"
    with suppress(FileNotFoundError, zipfile.BadZipFile, KeyError):
        Block.open(path)  # fails if it is not made yet, or damaged by a crash of the machine
        return path
    block = function(task.argument)
    unfinished = path.with_suffix(f".{uuid4().hex}.partial")
    try:
        with named_errors(folder):
            block.save(unfinished)
        unfinished.replace(path)
    finally:  # what is cut off would keep a full disk full
        unfinished.unlink(missing_ok=True)
    return path
