"""Vectors of turns or sentences by a frozen encoder, which are computed once and kept: `--vectors`."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn

NEW_VECTORS = 20_000  # after which the file is written


class FrozenEncoder(Protocol):
    """What the vectors are of: `networks.evidence.EvidenceEncoder`."""

    config: Any
    embed_tokens: nn.Embedding

    def encode(self, units: Iterable[tuple[int, ...]]) -> Tensor:
        """Computes the (N, C) vectors of units."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the weights."""


class KeptVectors:
    """Vectors by the tokens that they are of, in fp16, in memory and in a file.

    The file is for one encoder: with other weights or settings the vectors are computed anew.
    """

    def __init__(self, path: str | None) -> None:
        self.path = None if path is None else Path(path)
        self.vectors: dict[bytes, np.ndarray] = {}
        self.encoder_digest = b""  # of the encoder that the vectors are of
        self.saved = 0

    def get(self, units: list[tuple[int, ...]], encoder: FrozenEncoder) -> Tensor:
        """Returns the (N, C) vectors of units; those that are not kept yet are computed."""
        if not self.encoder_digest:
            self.encoder_digest = digest_of(encoder)
            self.vectors = self._stored()
            self.saved = len(self.vectors)
        keys = [hashlib.sha256(np.array(unit, "<i4").tobytes()).digest()[:16] for unit in units]
        if new := {key: unit for key, unit in zip(keys, units, strict=True) if key not in self.vectors}:
            computed = encoder.encode(new.values()).half().cpu().numpy()
            self.vectors.update(zip(new, computed, strict=True))
            if len(self.vectors) > self.saved + NEW_VECTORS:
                self.save()
        table = encoder.embed_tokens.weight
        return torch.from_numpy(np.stack([self.vectors[key] for key in keys])).to(table)

    def _stored(self) -> dict[bytes, np.ndarray]:
        """Reads the vectors of this encoder in the file; ValueError for a file of something else."""
        if self.path is None or not self.path.is_file():
            return {}
        try:
            with np.load(self.path) as arrays:
                if arrays["encoder"].tobytes() != self.encoder_digest:
                    return {}
                return dict(zip(map(bytes, arrays["keys"]), arrays["vectors"], strict=True))
        except (AttributeError, EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
            raise ValueError(f"{self.path} has no vectors of --vectors; remove it, or give another file") from error

    def save(self) -> None:
        """Writes the file if there are new vectors, with those that other processes have written since."""
        if self.path is None or len(self.vectors) == self.saved:
            return
        self.vectors = self._stored() | self.vectors
        self.path.parent.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(self.vectors), np.uint8).reshape(-1, 16)
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        with part.open("wb") as file:
            np.savez(
                file,
                encoder=np.frombuffer(self.encoder_digest, np.uint8),
                keys=keys,
                vectors=np.stack(list(self.vectors.values())),
            )
        part.replace(self.path)
        self.saved = len(self.vectors)


def digest_of(encoder: FrozenEncoder) -> bytes:
    """Computes the SHA-256 of all that the vectors of an encoder depend on: its settings and its weights."""
    config = encoder.config
    settings = {
        name: value
        for name, value in sorted(vars(config).items())
        if name not in config.training_only and not name.startswith("evidence_") and "dropout" not in name
    }
    digest = hashlib.sha256(repr(settings).encode())
    for name, tensor in encoder.state_dict().items():
        digest.update(name.encode() + tensor.detach().float().cpu().numpy().tobytes())
    return digest.digest()
