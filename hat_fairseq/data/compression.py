"""Opens files, which may be compressed, as the end of the name says: `.gz`, `.xz`, `.bz2` or `.zst`."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

AT_ONCE = 1 << 16  # bytes that are read, and that `peek` shows
MOST_MEMORY = 1 << 28  # bytes that xz may take: four times what `xz -9` needs
#: How a file begins that a clone without its large files has, and what fetches these.
POINTERS = {
    b"version https://git-lfs.github.com/spec/": ("Git LFS", "git lfs pull"),
    b"version https://hawser.github.com/spec/": ("Git LFS", "git lfs pull"),  # of its first versions
    b"/annex/objects/": ("git-annex", "git annex get"),
}
LONGEST_POINTER = max(map(len, POINTERS))
ERRORS = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, OSError)


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


def _zstandard(file: Any) -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(file)


ENDINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    ".gz": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    ".xz": ("xz", lambda file: _Streams(file, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=MOST_MEMORY))),
    ".bz2": ("bzip2", lambda file: _Streams(file, bz2.BZ2Decompressor)),
    ".zst": ("Zstandard", _zstandard),
}


def check_pointer(head: bytes, path: Path) -> None:
    """Raises ValueError for the beginning of a pointer of Git LFS or git-annex."""
    for begin, (tool, command) in POINTERS.items():
        if head.startswith(begin):
            raise ValueError(f"{path} is a {tool} pointer, not the file itself: run `{command}` in its clone")


@contextmanager
def decompressed(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file, which may be compressed, as the bytes that it stands for; ValueError for a damaged one."""
    with open(path, "rb", buffering=AT_ONCE) as opened:
        file = cast(io.BufferedReader, opened)
        check_pointer(file.peek(LONGEST_POINTER), path)
        if (ending := path.suffix.lower()) not in ENDINGS:
            yield file
            return
        name, opener = ENDINGS[ending]
        try:
            with io.BufferedReader(opener(file), AT_ONCE) as content:
                yield content
        except Exception as error:
            is_damage = isinstance(error, ERRORS) or type(error).__name__ == "ZstdError"
            if not is_damage or getattr(error, "errno", None) is not None:  # of the disk
                raise
            raise ValueError(f"{path}: damaged {name} file ({error}); fetch it again") from error
