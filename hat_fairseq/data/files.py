"""Reading lines, hashing files, and writing a directory atomically."""

import gzip
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    r"""Yield ``(line number from 1, line without its end)`` of a UTF-8 file, gzipped if it ends in ``.gz``.

    A line ends at ``\n`` and nowhere else: Python's text mode would also break at a lone ``\r`` and so shift every
    later row against the parallel files. A byte order mark at the start of the file is no part of its text.

    Raises:
        ValueError: invalid UTF-8 (with file, line and byte offset) or a damaged gzip file.
    """
    path = Path(path)
    offset = 0
    with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        try:
            for number, raw in enumerate(file, start=1):
                line = _decode(raw, f"{path}:{number}", offset).removesuffix("\n")
                yield number, line.removeprefix("\ufeff") if number == 1 else line
                offset += len(raw)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: damaged gzip file ({error}); fetch it again") from error


def read_json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number from 1, object)`` of a file with one JSON object on each line.

    Raises:
        ValueError: as ``read_lines``, or a line that is no JSON object; with file and line.
    """
    for number, line in read_lines(path):
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: not a JSON object ({error}); is the file cut off?") from error
        if not isinstance(record, dict):
            raise ValueError(f"{path}:{number}: expected a JSON object, found {line:.60}")
        yield number, record


def _decode(raw: bytes, where: str, offset: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: invalid UTF-8, byte 0x{raw[error.start]:02x} at byte {offset + error.start} of the text "
            f"({error.reason}); convert the file to UTF-8, for example with iconv"
        ) from error


def sha256_of(path: str | Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """A hidden sibling of ``path``, open for bytes, renamed to ``path`` when the block ends without an error."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_directory(final: str | Path, made_by: str, overwrite: bool = False) -> Iterator[Path]:
    """A hidden sibling of ``final``, renamed to ``final`` when the block ends without an error.

    Args:
        final: the directory to create.
        made_by: a file that every finished directory of this kind contains. ``overwrite`` replaces only directories
            that have it, so that a mistyped path cannot delete somebody's work.

    Raises:
        ValueError: ``final`` exists and may not be replaced.
    """
    final = Path(final).absolute()
    _check_replaceable(final, made_by, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = final.with_name(f".{final.name}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)  # left behind by a killed process that had our number
    partial.mkdir()
    try:
        yield partial
        _check_replaceable(final, made_by, overwrite)  # somebody else may have finished meanwhile
        _move_into_place(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_replaceable(final: Path, made_by: str, overwrite: bool) -> None:
    if not final.exists() and not final.is_symlink():
        return
    if not overwrite:
        raise ValueError(f"{final} already exists; choose another directory or replace it with --overwrite")
    if not (final / made_by).is_file():
        raise ValueError(f"{final} has no {made_by}, so it was not written by this command; not overwriting it")


def _move_into_place(partial: Path, final: Path) -> None:
    if not final.exists():
        partial.rename(final)
        return
    replaced = final.with_name(f".{final.name}.replaced-{os.getpid()}")
    final.rename(replaced)
    partial.rename(final)
    shutil.rmtree(replaced)
