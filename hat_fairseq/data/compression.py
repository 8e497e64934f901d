"""Opens files, which may be compressed: with gzip (`.gz`), xz (`.xz`), bzip2 (`.bz2`) or Zstandard (`.zst`).

A file whose first bytes are of another compression than its name is refused, and so is a pointer of Git LFS.
"""

import bz2
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

ENDINGS = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "Zstandard"}
#: How a file begins that a clone without its large files has, and what fetches these.
POINTERS = {
    b"version https://git-lfs.github.com/spec/": ("Git LFS", "git lfs pull"),
    b"version https://hawser.github.com/spec/": ("Git LFS", "git lfs pull"),  # of its first versions
    b"/annex/objects/": ("git-annex", "git annex get"),
}
LONGEST_POINTER = max(map(len, POINTERS))
AT_ONCE = 1 << 16  # bytes that are read, and that `peek` shows
MOST_MEMORY = 1 << 28  # bytes that xz may take: four times what `xz -9` needs

_MAGIC = {
    "gzip": rb"\x1f\x8b",
    "xz": rb"\xfd7zXZ\x00",
    "bzip2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",  # of a file with content, and of an empty one
    "Zstandard": rb"\x28\xb5\x2f\xfd",
}


def compression_of(head: bytes) -> str | None:
    """Returns the name of the compression of a file that begins with `head`; None for another file."""
    return next((name for name, magic in _MAGIC.items() if re.match(magic, head)), None)


def check_pointer(head: bytes, path: Path) -> None:
    """Raises ValueError for the beginning of a pointer of Git LFS or git-annex."""
    for begin, (tool, command) in POINTERS.items():
        if head.startswith(begin):
            raise ValueError(f"{path} is a {tool} pointer, not the file itself: run `{command}` in its clone")


def checked_compression(head: bytes, path: Path) -> str | None:
    """Returns the compression of a file; ValueError if its name says another one, or if it is a pointer of Git LFS."""
    check_pointer(head, path)
    name, said = compression_of(head), ENDINGS.get(path.suffix.lower())
    if name and name != said:
        ending = next(ending for ending, each in ENDINGS.items() if each == name)
        raise ValueError(f"{path} is compressed with {name}: end its name in {ending}, or unpack it")
    if said and not name:
        raise ValueError(f"{path} is no {said} file, as its name says: rename it, or fetch it again")
    return name


@contextmanager
def decompressed(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file, which may be compressed, as the bytes that it stands for.

    Raises:
        ValueError: the file is damaged, needs more memory than `MOST_MEMORY`, or is something else than its name says.
    """
    with open(path, "rb", buffering=AT_ONCE) as opened:
        file = cast(io.BufferedReader, opened)
        name = checked_compression(file.peek(1), path)
        if name is None:
            yield file
            return
        try:
            with io.BufferedReader(_opened(name, file), AT_ONCE) as content:
                yield content
        except _errors_of(name) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk
                raise
            raise ValueError(f"{path}: damaged {name} file ({error}); fetch it again") from error


def _opened(name: str, file: io.BufferedReader) -> Any:
    if name == "gzip":
        return gzip.GzipFile(fileobj=file)
    if name == "bzip2":
        return _Streams(file, bz2.BZ2Decompressor)
    if name == "xz":
        return _Streams(file, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=MOST_MEMORY))
    return _zstandard().ZstdFile(file)


def _zstandard() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _errors_of(name: str) -> tuple[type[Exception], ...]:
    own = (_zstandard().ZstdError,) if name == "Zstandard" else ()
    return EOFError, OSError, zlib.error, lzma.LZMAError, *own


class _Streams(io.RawIOBase):
    """The content of all streams of a bzip2 or xz file, between which null bytes may stand.

    Python's own classes end without a word where something follows that begins no stream.
    """

    def __init__(self, file: BinaryIO, stream: Callable[[], Any]) -> None:
        self.file, self.stream, self.current = file, stream, stream()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            if self.current.eof:
                rest = self.current.unused_data.lstrip(b"\0")
                while not rest:
                    if not (read := self.file.read(AT_ONCE)):
                        return 0
                    rest = read.lstrip(b"\0")
                self.current = self.stream()
            elif self.current.needs_input and not (rest := self.file.read(AT_ONCE)):
                raise EOFError("it ends in the middle")
            else:
                rest = rest if self.current.needs_input else b""
            data = self.current.decompress(rest, len(buffer))
        buffer[: len(data)] = data
        return len(data)
