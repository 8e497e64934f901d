"""Vectors of texts in a file, `--vectors`, which several trainings, predictions and scores of one encoder share.

The file is mapped, not read: a training needs the memory of the vectors that are new since it was written last.
"""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

from hat_fairseq.data.outputs import atomic_file, check_output

MARK = "hat_fairseq vectors 2"  # of the files; 1 had one vector a unit, none in context
AT_ONCE = 1 << 24  # bytes of a file that are looked at together
LOCAL_HEADER = 30  # bytes of an entry of a zip archive before its name
Vectors = dict[bytes, np.ndarray]  # (pieces, C) in fp16 by the key of a text


class VectorFile:
    """The vectors of one encoder, which its digest names.

    Raises:
        ValueError: the file is none of `--vectors`, is damaged, or is where nothing may be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_output(path, overwrite=True, flag="--vectors")
        if self._arrays():  # a wrong file is refused before the work begins
            self._check_numbers()

    def read(self, encoder: bytes, width: int) -> Vectors:
        """Returns the vectors of this encoder, none of another one; ValueError for vectors of another width."""
        arrays = self._arrays()
        if not arrays or arrays["encoder"].tobytes() != encoder:
            return {}
        if arrays["vectors"].shape[1] != width:
            raise ValueError(f"{self.path} has vectors of {arrays['vectors'].shape[1]} channels, not {width}")
        return by_key(arrays["keys"], arrays["counts"], arrays["vectors"])

    def add(self, encoder: bytes, vectors: Mapping[bytes, np.ndarray]) -> Vectors:
        """Writes vectors with those that other processes have written since, and returns all, mapped.

        Vectors of another encoder in the file are lost.
        """
        width = next(iter(vectors.values())).shape[1]
        vectors = self.read(encoder, width) | dict(vectors)
        keys = np.frombuffer(b"".join(vectors), np.uint8).reshape(len(vectors), -1)
        counts = np.array(list(map(len, vectors.values())))
        small = {"mark": np.array(MARK), "encoder": np.frombuffer(encoder, np.uint8), "keys": keys, "counts": counts}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # As numpy.savez writes it, but one array after the other.
        with atomic_file(self.path) as content:
            with ZipFile(content, "w", ZIP_STORED) as archive:
                for name, array in small.items():
                    with archive.open(f"{name}.npy", "w") as file:
                        np.lib.format.write_array(file, array)
                with archive.open("vectors.npy", "w", force_zip64=True) as file:
                    header = {"descr": "<f2", "fortran_order": False, "shape": (int(counts.sum()), width)}
                    np.lib.format.write_array_header_1_0(file, header)
                    for each in vectors.values():
                        file.write(each.astype("<f2", copy=False).tobytes())
            content.flush()
            with open(content.name, "rb") as own:  # before it has its name: then another process may replace it
                return by_key(keys, counts, mapped(own, "vectors"))

    def _arrays(self) -> dict[str, np.ndarray]:
        """Opens the arrays of the file, none if there is no file; ValueError for a file of something else."""
        if not self.path.exists():
            return {}
        with self._refusing(), self.path.open("rb") as content:
            with np.load(content) as file:
                arrays = {name: file[name] for name in ("mark", "encoder", "keys", "counts")}
            arrays["vectors"] = mapped(content, "vectors")
            keys, counts, vectors = (arrays[name] for name in ("keys", "counts", "vectors"))
            if str(arrays["mark"]) != MARK or len(keys) != len(counts) or (keys.ndim, vectors.ndim) != (2, 2):
                raise ValueError
            if (keys.dtype, counts.dtype.kind, vectors.dtype) != (np.uint8, "i", np.float16):
                raise ValueError
            if counts.min(initial=1) < 1 or counts.sum() != len(vectors):
                raise ValueError
        return arrays

    def _check_numbers(self) -> None:
        """Raises ValueError for vectors that are damaged, or no numbers; they are read piece by piece."""
        with self._refusing(), ZipFile(self.path) as archive, archive.open("vectors.npy") as file:
            dtype = header_of(file)[2]
            while content := file.read(AT_ONCE - AT_ONCE % dtype.itemsize):  # at its end the sum of all is compared
                if not np.isfinite(np.frombuffer(content, dtype)).all():
                    raise ValueError

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Names the file in the error of one that cannot be read."""
        try:
            yield
        except (AttributeError, EOFError, KeyError, OSError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(
                f"{self.path} has no vectors that this version writes: remove it, or give --vectors another file"
            ) from error


def by_key(keys: np.ndarray, counts: np.ndarray, vectors: np.ndarray) -> Vectors:
    """Returns the vectors of each text by its key."""
    pieces = np.split(vectors, np.cumsum(counts)[:-1]) if len(counts) else []
    return dict(zip(map(bytes, keys), pieces, strict=True))


def header_of(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Reads the shape of an array in numpy's format, whether its columns come first, and the type of its numbers."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def mapped(content: BinaryIO, name: str) -> np.ndarray:
    """Maps an array of an .npz file into memory; ValueError for one that is compressed or empty."""
    with ZipFile(content) as archive:
        entry = archive.getinfo(f"{name}.npy")
        with archive.open(entry) as file:
            shape, by_columns, dtype = header_of(file)
            header = file.tell()
    if entry.compress_type != ZIP_STORED or by_columns or dtype.hasobject:
        raise ValueError
    content.seek(entry.header_offset + LOCAL_HEADER - 4)
    names = sum(struct.unpack("<HH", content.read(4)))  # bytes of its name and of what zip64 adds
    begin = entry.header_offset + LOCAL_HEADER + names + header
    return np.asarray(np.memmap(content, dtype, "c", begin, shape))  # "c": for torch, which warns of what is read only
