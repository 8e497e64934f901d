"""Writes files and directories atomically, and refuses to replace files that the command did not write."""

import errno
import fcntl
import functools
import glob
import logging
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO
from uuid import uuid4

from hat_fairseq.data.checksums import MANIFEST, Checksums
from hat_fairseq.data.files import files_below

_warn_once = functools.cache(logging.getLogger(__name__).warning)


@contextmanager
def atomic_file(path: str | Path, alone: bool = False) -> Iterator[BinaryIO]:
    """Yields a hidden sibling of `path`, open for bytes, renamed to `path` when the block ends without an error.

    The sibling is locked while it is written. What a killed process has left is removed, where the file system has
    locks. If two processes write it, the last one wins; with `alone` the second one gets a ValueError. A device, pipe,
    socket or folder is never replaced: ValueError.
    """
    path = Path(path)
    _check_regular(path, path)
    with nullcontext() if alone else suppress(ValueError):
        _remove_partials(path)
    partial = _sibling(path, "partial")
    try:
        with named_errors(path), open(partial, "xb") as file:
            lock(file, path.parent)
            yield file
            file.flush()
            os.fsync(file.fileno())
        _check_regular(path, path)  # something else may have taken its place
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_directory(
    final: str | Path, manifest: str | None = None, overwrite: bool = False, key: str = "files"
) -> Iterator[Path]:
    """Opens a folder as `atomic_file` opens a file.

    Raises ValueError if `final` may not be replaced, is in another folder with a manifest, or another process is
    writing it. If a killed process had moved the old folder aside, the old one is put back first.

    `manifest`: name of a JSON file with SHA-256 of all files of a finished directory, under `sha256`. With `overwrite`
    a directory is replaced only if its manifest has `key`, which shows the command that wrote it, and if it has no
    other or changed file, so that nobody's work is deleted. None: never.
    """
    final = Path(final).resolve()  # through a link, the link stays
    with suppress(ValueError):  # another process is writing it, and may be about to rename it
        _put_back(final)
    _check_replaceable(final, manifest, overwrite, key)
    if (folder := folder_with_manifest(final)) is not None:
        raise ValueError(f"{final} is in {folder}, which hat has written; choose another directory")
    new = [folder for folder in final.parents if not folder.exists()]
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove_partials(final)
    partial, replaced = _sibling(final, "partial"), _sibling(final, "replaced")
    partial.mkdir()
    try:
        with named_errors(final), locked(partial, f"another process has taken {partial}"):
            yield partial
            _check_replaceable(final, manifest, overwrite, key)  # somebody else may have finished meanwhile
            if final.exists():
                final.rename(replaced)
            partial.rename(final)
            shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):  # a folder that is not empty stays, and those above it
            for folder in new:
                folder.rmdir()


def _sibling(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{what}-{uuid4().hex}")


def _siblings(path: Path, what: str) -> list[Path]:
    """Lists the siblings of `path` by the exact form of their names; a link is not ours."""
    siblings = path.parent.glob(f".{glob.escape(path.name)}.{what}-{'[0-9a-f]' * 32}")
    return [sibling for sibling in siblings if not sibling.is_symlink()]


def _put_back(final: Path) -> None:
    """Gives a folder its name again that a killed process has moved aside, or removes it if the new one is there.

    ValueError if another process is writing it.
    """
    if not (replaced := _siblings(final, "replaced")):
        return
    _remove_partials(final)
    for folder in replaced:
        if final.exists():
            shutil.rmtree(folder, ignore_errors=True)
        elif not _siblings(final, "partial"):  # without locks, another process may be about to rename it
            folder.rename(final)


def _remove_partials(path: Path) -> None:
    """Removes what killed processes have left of `path`; ValueError if another process is writing it."""
    refusal = f"another process is writing {path}; wait for it, or choose another name"
    for partial in _siblings(path, "partial"):
        with suppress(FileNotFoundError), locked(partial, refusal) as has_lock:
            if has_lock and partial.is_dir():
                shutil.rmtree(partial)
            elif has_lock:
                partial.unlink()


def _check_replaceable(final: Path, manifest: str | None, overwrite: bool, key: str) -> None:
    if not final.exists():
        return
    if manifest is None or not overwrite:
        replace = ", or replace it with --overwrite" if manifest else ""
        raise ValueError(f"{final} already exists; choose another directory{replace}")
    why = "so --overwrite does not replace it: choose another directory, or remove it yourself"
    try:
        checksums = Checksums.read(final, manifest, key)
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{final} has no {manifest} of this command, {why}") from None
    names = [name for name in files_below(final) if name != manifest]
    for name, _ in checksums.problems(final, names):
        raise ValueError(f"{final / name} has changed since {manifest} was written, or is not in it, {why}")


def _check_regular(path: Path, shown: object) -> None:
    """Raises ValueError for a folder, device, pipe or socket; `shown`: its name in the message."""
    if path.is_dir():
        raise ValueError(f"{shown} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{shown} is a device, a pipe or a socket; name a file")


def check_output(
    path: str | Path, overwrite: bool, inputs: Iterable[str | Path | None] = (), flag: str = "--out"
) -> None:
    """Refuses to replace a file or to fill a disk, before the work begins.

    Never replaced are `inputs`, files in a folder among them. Nothing is written below a folder with a manifest.json of
    this package, which would no longer be what the manifest says, or over what is no regular file. An input may be
    several paths with os.pathsep between them, as those of an ensemble.
    """
    path = Path(path)
    if path.parent.is_dir():
        check_space(path.parent, 1e6)
    _check_regular(path, f"{flag} {path}")
    paths = [str(read) for read in inputs if read is not None]
    for read in [Path(part) for each in paths for part in {each, *each.split(os.pathsep)}]:
        if not path.exists() or not read.exists():
            continue
        if path.samefile(read):
            raise ValueError(f"{flag} {path} is also an input of this command; name another file")
        if read.is_dir() and path.resolve().is_relative_to(read.resolve()):
            raise ValueError(f"{flag} {path} is in {read}, which is an input of this command; name another file")
    if (folder := folder_with_manifest(path)) is not None:
        raise ValueError(f"{flag} {path} is in {folder}, which hat has written; name a file elsewhere")
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise ValueError(f"{flag} {path} exists; name another file, or replace it with --overwrite")


def folder_with_manifest(path: Path) -> Path | None:
    """Returns the folder above a path that has a manifest.json of this package."""
    for folder in path.resolve().parents:
        with suppress(OSError, ValueError, KeyError, TypeError):
            if (folder / MANIFEST).is_file():
                Checksums.read(folder)
                return folder
    return None


def check_folder(out: Path, flag: str = "--out") -> None:
    """Raises ValueError if the folder of an output does not exist: that is known before the work begins."""
    if not out.parent.is_dir():
        raise ValueError(f"{out.parent}: the directory of {flag} does not exist")


def check_outputs(outputs: Mapping[str, Path], overwrite: bool, inputs: Iterable[str | Path | None]) -> None:
    """Refuses several files as `check_output`, in folders that do not exist, or of the same name; by their flags."""
    inputs = list(inputs)
    for flag, path in outputs.items():
        check_folder(path, flag)
        check_output(path, overwrite, inputs, flag)
    if len({path.resolve() for path in outputs.values()}) < len(outputs):
        raise ValueError(f"two of {', '.join(outputs)} name the same file")


def check_space(directory: Path, needed: float) -> None:
    """Raises ValueError if the disk of a directory has fewer than `needed` bytes left."""
    if (free := shutil.disk_usage(directory).free) < needed:
        raise ValueError(
            f"{directory}: the disk has {free / 1e6:,.1f} MB left, and about {needed / 1e6:,.1f} MB are needed"
        )


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Names the path in the error of a disk that is full; Python does not, nor do libraries, which have own errors."""
    try:
        yield
    except Exception as error:
        if (number := _disk_full(error)) is None or getattr(error, "filename", None) is not None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


def _disk_full(error: Exception) -> int | None:
    """Returns the number of an error of a full disk: Python's, a library's in Rust, or torch's about it."""
    of_rust = re.search(r"\(os error (\d+)\)", str(error))
    causes = [error.errno] if isinstance(error, OSError) else [int(of_rust[1])] if of_rust else []
    if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):
        causes = [error.__context__.errno]
    return next((number for number in causes if number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)), None)


@contextmanager
def locked(path: Path, message: str) -> Iterator[bool]:
    """Holds the lock of a file or folder; ValueError with the message if another process has it. Yields as `lock`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield lock(descriptor, path.parent)
    except BlockingIOError:
        raise ValueError(message) from None
    finally:
        os.close(descriptor)


@contextmanager
def waiting(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder, and waits while another process has it; without locks it goes on at once."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def open_as_it_is(path: Path) -> IO[str]:
    """Opens a text file to read and to append, made if it is missing; ValueError for a link or what is no file."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    refusal = f"{path} is a link or no regular file: remove it"
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise ValueError(refusal) from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise ValueError(refusal)
    return open(descriptor, "a+", encoding="utf-8", errors="replace")


def lock(file: int | IO[Any], folder: Path, function: Callable[..., object] = fcntl.flock) -> bool:
    """Locks an open file or folder in `folder` without waiting; False and a warning if its file system has no locks.

    `function`: `fcntl.flock`, whose locks child processes share, or `fcntl.lockf`, whose locks they do not.

    Raises:
        BlockingIOError: another process has the lock.
    """
    try:
        function(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):  # POSIX allows both
            raise BlockingIOError(error.errno, error.strerror, str(folder)) from None
        _warn_once("%s: files cannot be locked (%s): run no other command that writes there", folder, error.strerror)
        return False
    return True
