"""Vectors by a frozen encoder, which are computed once and kept in memory, and for other runs in a store.

Legend: C channels.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from .vector_file import VectorFile

STORED_AFTER = 20_000  # new vectors, and as many as were there before: they are stored in the middle of an epoch
KEY_BYTES = 16
Ids = Sequence[int]
Encode = Callable[[list[Sequence[Ids]]], Iterable[Tensor]]


class VectorCache:
    """Vectors of texts by the tokens that they are of, in fp16; an `encoder` is a `network.UnitsEncoder`.

    A text is the tokens of its pieces, and has a vector for each piece. A store is for one encoder: with other weights
    or settings the vectors are computed anew.
    """

    def __init__(self, store: VectorFile | None = None) -> None:
        self.store = store
        self.forget()

    def forget(self) -> None:
        """Drops the vectors in memory, because the encoder has other weights."""
        self.vectors: dict[bytes, Any] = {}  # (pieces, C) by the key of a text
        self.encoder_digest = b""  # of the encoder that the vectors are of
        self.stored = 0  # vectors in the store

    def open(self, encoder: Any) -> None:
        """Takes the vectors of this encoder that the store has, once."""
        if self.encoder_digest:
            return
        self.encoder_digest = encoder.digest or digest_of(encoder)
        if self.store is not None:
            self.vectors = self.store.read(self.encoder_digest, encoder.embed_tokens.embedding_dim)
            self.stored = self.count

    def get(self, texts: Sequence[Sequence[Ids]], encoder: Any, encode: Encode, name: str) -> list[Tensor]:
        """Returns (pieces, C) vectors of each text; `encode`, which has a `name`, computes those not kept yet."""
        self.open(encoder)
        keys = [key_of(text, name) for text in texts]
        if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in self.vectors}:
            computed = encode(list(new.values()))
            self.vectors.update((key, each.half().cpu().numpy()) for key, each in zip(new, computed, strict=True))
            if self.count >= max(STORED_AFTER, self.stored) + self.stored:
                self.save()
        table = encoder.embed_tokens.weight
        return [torch.from_numpy(self.vectors[key]).to(table) for key in keys]

    @property
    def count(self) -> int:
        """Returns the number of vectors."""
        return sum(map(len, self.vectors.values()))

    def save(self) -> None:
        """Stores new vectors, if there are any."""
        if self.store is not None and self.count > self.stored:
            self.vectors = self.store.add(self.encoder_digest, self.vectors)  # instead of those in memory
            self.stored = self.count


def packed(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def key_of(text: Sequence[Ids], name: str) -> bytes:
    """Computes the key of a text: the first bytes of the SHA-256 of how it is encoded and of its pieces."""
    digest = hashlib.sha256(name.encode() + packed([len(text), *map(len, text)]))
    for piece in text:
        digest.update(packed(piece))
    return digest.digest()[:KEY_BYTES]


def digest_of(encoder: Any) -> bytes:
    """Computes the SHA-256 of all that the vectors of an encoder depend on: its settings and its weights."""
    config = encoder.config
    settings = {
        name: value
        for name, value in sorted(vars(config).items())
        if name not in {*config.training_only, "no_words"} and not name.startswith("unit_") and "dropout" not in name
    }
    digest = hashlib.sha256(repr(settings).encode())
    for name, tensor in encoder.state_dict().items():
        digest.update(name.encode() + tensor.detach().float().cpu().numpy().tobytes())
    return digest.digest()
