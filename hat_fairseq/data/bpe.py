"""The interface `Bpe` of all BPEs, and how they are saved and loaded."""

import shutil
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from hat_fairseq.data.gpt2_bpe import Gpt2Bpe
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.sentencepiece_bpe import MODEL, SentencePieceBpe

KINDS = ("learned", "gpt2", "sentencepiece")
CODES = "bpe.codes"
FILES = {"learned": (CODES,), "gpt2": ("encoder.json", "vocab.bpe"), "sentencepiece": (MODEL,), "none": ()}


class Bpe(Protocol):
    """From text to tokens without white space, and back.

    `separator` goes before each sentence but the first, so that the tokens of the sentences, put one after the
    other, decode to the sentences joined by single spaces.
    """

    kind: str
    separator: str

    def encode(self, text: str) -> list[str]: ...

    def decode(self, tokens: Iterable[str]) -> str: ...

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        """Which characters of `text`, spaces not counted, each token that `encode` made of it stands for: begin, end.

        The end is exclusive. Tokens that are part of the same character all stand for it.
        """
        ...


class NoBpe:
    """Tokens are what stands between white space: for sequences of symbols."""

    kind, separator = "none", " "

    def encode(self, text: str) -> list[str]:
        return text.split()

    def decode(self, tokens: Iterable[str]) -> str:
        return " ".join(tokens)

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        ends = list(accumulate(map(len, tokens)))
        return list(zip([0, *ends], ends, strict=False))


def save_bpe(bpe: Bpe, directory: Path) -> tuple[str, ...]:
    """Write `bpe` into `directory` and return the names of its files."""
    names = FILES[bpe.kind]
    if isinstance(bpe, LearnedBpe):
        bpe.save(directory / names[0])
    elif isinstance(bpe, Gpt2Bpe):
        shutil.copyfile(bpe.encoder_json, directory / names[0])
        shutil.copyfile(bpe.vocab_bpe, directory / names[1])
    elif isinstance(bpe, SentencePieceBpe):
        shutil.copyfile(bpe.model, directory / names[0])
    return names


def load_bpe(kind: str, directory: Path) -> Bpe:
    """Reads the files that `save_bpe` wrote."""
    paths = [directory / name for name in FILES[kind]]
    if kind == "none":
        return NoBpe()
    if kind == "sentencepiece":
        return SentencePieceBpe(*paths)
    return Gpt2Bpe(*paths) if kind == "gpt2" else LearnedBpe.load(*paths)
