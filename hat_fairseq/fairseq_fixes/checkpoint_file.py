"""Is a file a whole checkpoint? Asked before it is read.

`torch.save` writes a zip archive with a CRC-32 for each tensor, which `torch.load` does not compare: flipped bits load.
Comparing them takes about half a second for a gigabyte.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

_PICKLE = b"\x80"  # the first byte of checkpoints of torch before 1.6, which have no checksums
_ZIP = b"PK"


class CheckpointError(ValueError):
    """A checkpoint that is missing, refused, or does not fit; the message says which and what to do."""


def check_file(path: str) -> None:
    """Checks what can be known of a checkpoint without loading it; a file that does not exist is left to the caller.

    Raises:
        CheckpointError: it is not a file of `torch.save`, or its content has changed since it was written.
    """
    if Path(path).is_dir():
        raise CheckpointError("a directory; give the checkpoint in it")
    if not Path(path).is_file():
        return
    with open(path, "rb") as file:
        first = file.read(2)
    if first and not first.startswith((_PICKLE, _ZIP)):
        raise CheckpointError("not a checkpoint of torch, by its first bytes")
    if zipfile.is_zipfile(path):
        _check_sums(path)


def _check_sums(path: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        damaged = str(error)
    if damaged is not None:
        raise CheckpointError(f"damaged: wrong checksum of {damaged}; use another checkpoint, or copy it again")
