"""Compressed files, which are known by their first bytes, whatever they are called: gzip, xz, bzip2 and Zstandard."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

ENDINGS = (".gz", ".xz", ".bz2", ".zst")  # what such files are usually called
AT_ONCE = 1 << 16  # bytes that are read, and that `peek` shows
MOST_MEMORY = 1 << 28  # bytes that xz may take: four times what `xz -9` needs

_MAGIC = {
    "gzip": rb"\x1f\x8b",
    "xz": rb"\xfd7zXZ\x00",
    "bzip2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",  # of a file with content, and of an empty one
    "Zstandard": rb"\x28\xb5\x2f\xfd",
}
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError)


def compression_of(head: bytes) -> str | None:
    """Returns the name of the compression of a file that begins with `head`; None for another file."""
    return next((name for name, magic in _MAGIC.items() if re.match(magic, head)), None)


@contextmanager
def decompressed(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file, which may be compressed, as the bytes that it stands for.

    Raises:
        ValueError: the file is damaged, needs more memory than `MOST_MEMORY`, or a package that is not installed.
    """
    with open(path, "rb", buffering=AT_ONCE) as opened:
        file = cast(io.BufferedReader, opened)
        name = compression_of(file.peek(1))
        if name is None:
            yield file
            return
        try:
            with io.BufferedReader(_opened(name, file, path), AT_ONCE) as content:
                yield content
        except (*_DAMAGED, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the disk
                raise
            raise ValueError(f"{path}: damaged {name} file ({error}); fetch it again") from error


def _opened(name: str, file: io.BufferedReader, path: Path) -> Any:
    if name == "gzip":
        return gzip.GzipFile(fileobj=file)
    if name == "bzip2":
        return bz2.BZ2File(file)
    if name == "xz":
        # The first block says how much memory it takes.
        lzma.LZMADecompressor(memlimit=MOST_MEMORY).decompress(file.peek(1), max_length=1)
        return lzma.LZMAFile(file)
    return _zstandard(file, path)


def _zstandard(file: BinaryIO, path: Path) -> Any:
    try:  # Python 3.14 has it
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]

        return zstd.ZstdFile(file)
    except ImportError:
        pass
    try:
        import pyarrow
    except ImportError as error:
        raise ValueError(
            f'{path} is compressed with Zstandard, which needs the package pyarrow: pip install "hat_fairseq[tables]", '
            "or unpack the file"
        ) from error
    return pyarrow.CompressedInputStream(file, "zstd")
