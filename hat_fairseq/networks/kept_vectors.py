"""Vectors by a frozen encoder, which are computed once and kept: `--vectors`.

The file is mapped, not read: a training needs the memory of the vectors that are new since it was written last.
"""

import glob
import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol, Self
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
import torch
from torch import Tensor, nn

MARK = "hat_fairseq vectors 2"  # of the files; 1 had one vector a unit, none in context
SAVED_AFTER = 20_000  # new vectors, and as many as were there before: the file is written in the middle of an epoch
KEY_BYTES = 16
AT_ONCE = 1 << 24  # bytes of a file that are looked at together
LOCAL_HEADER = 30  # bytes of an entry of a zip archive before its name
Ids = Sequence[int]


class FrozenEncoder(Protocol):
    """What the vectors are of: `networks.units.UnitsEncoder`."""

    config: Any
    embed_tokens: nn.Embedding
    digest: bytes  # `digest_of` it; empty: to be computed

    def state_dict(self) -> dict[str, Any]:
        """Returns the weights."""


class KeptVectors:
    """Vectors of texts by the tokens that they are of, in fp16, in a file, and in memory until it is written.

    A text is the tokens of its pieces, and has a vector for each piece. The file is for one encoder: with other weights
    or settings the vectors are computed anew.

    Raises:
        ValueError: the file is none of `--vectors`, or is damaged.
    """

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else Path(path)
        self.vectors: dict[bytes, np.ndarray] = {}  # (pieces, C) by the key of a text
        self.encoder_digest = b""  # of the encoder that the vectors are of
        self.saved = 0  # vectors in the file
        if self._read():  # a wrong file is refused before the work begins
            self._check_vectors()

    @classmethod
    def of(cls, encoder: FrozenEncoder, path: str | None) -> Self:
        """Reads the vectors of an encoder, to which others are added in memory alone.

        ValueError for a file that is missing or of another encoder.
        """
        stored = cls(path)
        if path is not None:
            stored.encoder_digest = encoder.digest or digest_of(encoder)
            stored.vectors = stored._stored(encoder.embed_tokens.embedding_dim)
            if not stored.vectors:
                raise ValueError(f"{path} has no vectors of this encoder: take the file that its training has kept")
            stored.path = None
        return stored

    def get(
        self,
        texts: Sequence[Sequence[Ids]],
        encoder: FrozenEncoder,
        encode: Callable[[list[Sequence[Ids]]], Iterable[Tensor]],
        name: str,
    ) -> list[Tensor]:
        """Returns (pieces, C) vectors of each text; `encode`, which has a `name`, computes those not kept yet."""
        if not self.encoder_digest:
            self.encoder_digest = encoder.digest or digest_of(encoder)
            self.vectors = self._stored(encoder.embed_tokens.embedding_dim)
            self.saved = self.count
        keys = [key_of(text, name) for text in texts]
        if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in self.vectors}:
            computed = encode(list(new.values()))
            self.vectors.update((key, each.half().cpu().numpy()) for key, each in zip(new, computed, strict=True))
            if self.count >= max(SAVED_AFTER, self.saved) + self.saved:
                self.save()
        table = encoder.embed_tokens.weight
        return [torch.from_numpy(self.vectors[key]).to(table) for key in keys]

    @property
    def count(self) -> int:
        """Returns the number of vectors."""
        return sum(map(len, self.vectors.values()))

    def _read(self) -> dict[str, np.ndarray]:
        """Opens the arrays of the file, none if there is no file; ValueError for a file of something else."""
        if self.path is None or not self.path.exists():
            return {}
        with self._refusing(), self.path.open("rb") as content:
            with np.load(content) as file:
                arrays = {name: file[name] for name in ("mark", "encoder", "keys", "counts")}
            arrays["vectors"] = mapped(content, "vectors")
            keys, counts, vectors = (arrays[name] for name in ("keys", "counts", "vectors"))
            if str(arrays["mark"]) != MARK or keys.shape != (len(counts), KEY_BYTES) or vectors.ndim != 2:
                raise ValueError
            if counts.min(initial=1) < 1 or counts.sum() != len(vectors):
                raise ValueError
        return arrays

    def _check_vectors(self) -> None:
        """Raises ValueError for vectors that are damaged, or no numbers; they are read piece by piece."""
        assert self.path is not None
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

    def _stored(self, width: int) -> dict[bytes, np.ndarray]:
        """Returns the vectors of this encoder that the file has."""
        arrays = self._read()
        if not arrays or arrays["encoder"].tobytes() != self.encoder_digest:
            return {}
        if arrays["vectors"].shape[1] != width:
            raise ValueError(f"{self.path} has vectors of {arrays['vectors'].shape[1]} channels, not {width}")
        return by_key(arrays["keys"], arrays["counts"], arrays["vectors"])

    def save(self) -> None:
        """Writes the file if there are new vectors, with those that other processes have written since."""
        if self.path is None or not self.vectors or self.count == self.saved:
            return
        width = next(iter(self.vectors.values())).shape[1]
        self.vectors = self._stored(width) | self.vectors
        self.path.parent.mkdir(parents=True, exist_ok=True)
        remove_parts(self.path)
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        keys = np.frombuffer(b"".join(self.vectors), np.uint8).reshape(-1, KEY_BYTES)
        counts = np.array(list(map(len, self.vectors.values())))
        small = {"mark": np.array(MARK), "encoder": np.frombuffer(self.encoder_digest, np.uint8)}
        with ZipFile(part, "w", ZIP_STORED) as archive:  # as numpy.savez writes it, but one array after the other
            for name, array in (small | {"keys": keys, "counts": counts}).items():
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, array)
            with archive.open("vectors.npy", "w", force_zip64=True) as file:
                header = {"descr": "<f2", "fortran_order": False, "shape": (int(counts.sum()), width)}
                np.lib.format.write_array_header_1_0(file, header)
                for each in self.vectors.values():
                    file.write(each.astype("<f2", copy=False).tobytes())
        with part.open("rb") as content:
            self.vectors = by_key(keys, counts, mapped(content, "vectors"))  # instead of those in memory
        part.replace(self.path)
        self.saved = self.count


def by_key(keys: np.ndarray, counts: np.ndarray, vectors: np.ndarray) -> dict[bytes, np.ndarray]:
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


def remove_parts(path: Path) -> None:
    """Removes what processes that no longer run have left of an unfinished file."""
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.part"):
        pid = part.name.removeprefix(f"{path.name}.").removesuffix(".part")
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists() and Path("/proc/self").exists():
            part.unlink(missing_ok=True)


def key_of(text: Sequence[Ids], name: str) -> bytes:
    """Computes the key of a text: the first bytes of the SHA-256 of how it is encoded and of its pieces."""
    digest = hashlib.sha256(name.encode() + np.array([len(text), *map(len, text)], "<i4").tobytes())
    for piece in text:
        digest.update(np.array(piece, "<i4").tobytes())
    return digest.digest()[:KEY_BYTES]


def digest_of(encoder: FrozenEncoder) -> bytes:
    """Computes the SHA-256 of all that the vectors of an encoder depend on: its settings and its weights."""
    config = encoder.config
    settings = {
        name: value
        for name, value in sorted(vars(config).items())
        if name not in {*config.training_only, "no_words"}
        and not name.startswith(config.of_heads)
        and "dropout" not in name
    }
    digest = hashlib.sha256(repr(settings).encode())
    for name, tensor in encoder.state_dict().items():
        digest.update(name.encode() + tensor.detach().float().cpu().numpy().tobytes())
    return digest.digest()
