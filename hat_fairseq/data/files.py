"""Reading lines, hashing files, and writing a directory atomically."""

import fcntl
import glob
import gzip
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

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


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    r"""Yield `(line number from 1, line without its end)` of a UTF-8 file, gzipped if it ends in `.gz`.

    A line ends at `\n` and nowhere else: Python's text mode would also break at a lone `\r` and so shift every
    later row against the parallel files. A byte order mark at the start of the file is no part of its text.

    Raises:
        ValueError: invalid UTF-8 (with file, line and byte offset) or a damaged gzip file.
    """
    path = Path(path)
    note_input(path)
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
    """Yield `(line number from 1, object)` of a file with one JSON object on each line.

    Raises:
        ValueError: as `read_lines`, a line that is no JSON object, or a key twice; with file and line.
    """
    for number, line in read_lines(path):
        try:
            record = json.loads(line, object_pairs_hook=_without_repeated_keys)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: not a JSON object ({error}); is the file cut off?") from error
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error
        if not isinstance(record, dict):
            raise ValueError(f"{path}:{number}: expected a JSON object, found {line:.60}")
        yield number, record


def read_json(path: str | Path) -> Any:
    """What a file that is one JSON value holds.

    Raises:
        ValueError: invalid UTF-8 or JSON; with file and line.
    """
    try:
        return json.loads("\n".join(line for _, line in read_lines(path)))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: no JSON ({error.msg}); is the file cut off?") from error


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return record


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
    """A hidden sibling of `path`, open for bytes, renamed to `path` when the block ends without an error."""
    path = Path(path)
    descriptor, partial_name = tempfile.mkstemp(prefix=f".{path.name}.partial-", dir=path.parent)
    partial = Path(partial_name)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(0o666 & ~_umask())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def check_output(
    path: str | Path, overwrite: bool, inputs: Iterable[str | Path | None] = (), flag: str = "--out"
) -> None:
    """Refuses to replace a file, before the work begins.

    Args:
        inputs: files that the command reads; they are never replaced.

    Raises:
        ValueError: `path` is one of the inputs, a folder, or exists and `overwrite` is not given.
    """
    path = Path(path)
    if not path.exists() and not path.is_symlink():
        return
    for read in inputs:
        if read is not None and Path(read).exists() and path.exists() and path.samefile(read):
            raise ValueError(f"{flag} {path} is also an input of this command; name another file")
    if path.is_dir():
        raise ValueError(f"{flag} {path} is a folder; name a file")
    if not overwrite:
        raise ValueError(f"{flag} {path} exists; name another file, or replace it with --overwrite")


@contextmanager
def atomic_directory(final: str | Path, manifest: str, overwrite: bool = False) -> Iterator[Path]:
    """A hidden sibling of `final`, renamed to `final` when the block ends without an error.

    The sibling is locked while it is written. What a killed process has left is removed.

    Args:
        final: the directory to create.
        manifest: name of a JSON file with the key `files`, the paths of all files of a finished directory. With
            `overwrite` a directory is replaced only if it has no other file, so that nobody's work is deleted.

    Raises:
        ValueError: `final` exists and may not be replaced, or another process is writing it.
    """
    final = Path(final).absolute()
    _check_replaceable(final, manifest, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    for left in final.parent.glob(f".{glob.escape(final.name)}.partial-*"):
        with locked(left, f"another process is writing {final}; wait for it, or choose another directory"):
            shutil.rmtree(left)
    partial = Path(tempfile.mkdtemp(prefix=f".{final.name}.partial-", dir=final.parent))
    partial.chmod(0o777 & ~_umask())
    try:
        with locked(partial, f"another process has taken {partial}"):
            yield partial
            _check_replaceable(final, manifest, overwrite)  # somebody else may have finished meanwhile
            _move_into_place(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def locked(path: Path, message: str) -> Iterator[None]:
    """Holds the lock of a file or folder; ValueError with the message if another process has it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ValueError(message) from None
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def files_below(directory: Path) -> list[str]:
    """The paths of all files below a directory, relative to it, sorted."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


def _check_replaceable(final: Path, manifest: str, overwrite: bool) -> None:
    if not final.exists() and not final.is_symlink():
        return
    if not overwrite:
        raise ValueError(f"{final} already exists; choose another directory or replace it with --overwrite")
    why = "so --overwrite does not replace it: choose another directory, or remove it yourself"
    try:
        listed = json.loads((final / manifest).read_text(encoding="utf-8"))["files"]
        known = {manifest, *listed}
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{final} has no {manifest} with a list of its files, {why}") from None
    if others := [name for name in files_below(final) if name not in known]:
        raise ValueError(f"{final} has {len(others)} files that are not in its {manifest}, {others[0]} for one, {why}")


def _move_into_place(partial: Path, final: Path) -> None:
    if not final.exists():
        partial.rename(final)
        return
    replaced = Path(tempfile.mkdtemp(prefix=f".{final.name}.replaced-", dir=final.parent))
    final.rename(replaced)
    partial.rename(final)
    shutil.rmtree(replaced)
