"""The kinds of BPE behind one interface: learning, saving and loading."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from hat_fairseq.data.fast_bpe import FastBpe, import_fast_bpe
from hat_fairseq.data.gpt2_bpe import Gpt2Bpe, find_gpt2_files
from hat_fairseq.data.learned_bpe import LearnedBpe

__all__ = ["KINDS", "Bpe", "FastBpe", "Gpt2Bpe", "LearnedBpe", "find_gpt2_files", "from_codes", "learn", "load_bpe"]
__all__ += ["save_bpe"]

KINDS = ("learned", "fastbpe", "gpt2")
CODES = "bpe.codes"
FILES = {"learned": (CODES,), "fastbpe": (CODES,), "gpt2": ("encoder.json", "vocab.bpe")}


class Bpe(Protocol):
    """From text to tokens without white space, and back.

    ``separator`` goes before each sentence but the first, so that the tokens of the sentences, put one after the
    other, decode to the sentences joined by single spaces.
    """

    kind: str
    separator: str

    def encode(self, text: str) -> list[str]: ...

    def decode(self, tokens: Iterable[str]) -> str: ...

    def extents(self, tokens: Iterable[str]) -> list[tuple[int, int]]:
        """Which characters of the text each token stands for, spaces not counted: begin, and end (exclusive).

        Args:
            tokens: what ``encode`` returned. Tokens that are part of the same character all stand for it.
        """
        ...


def learn(kind: str, words: Counter[str], num_codes: int) -> Bpe:
    """Learn joint codes from words and how often each occurs; ``learned`` and ``fastbpe`` learn and apply the same.

    Raises:
        ValueError: nothing to learn from, ``num_codes`` below 1, or a missing package.
    """
    if kind == "fastbpe":
        import_fast_bpe()
    return _of_kind(kind, LearnedBpe.learn_from_words(words, num_codes))


def from_codes(kind: str, path: str | Path) -> Bpe:
    """Take the codes of a file in fastBPE's format (``left right count``), whoever learned them.

    Raises:
        ValueError: a line of another form, with file and line; or a missing package.
    """
    return _of_kind(kind, LearnedBpe.load(path))


def save_bpe(bpe: Bpe, directory: Path) -> tuple[str, ...]:
    """Write ``bpe`` into ``directory`` and return the names of its files."""
    names = FILES[bpe.kind]
    if isinstance(bpe, LearnedBpe | FastBpe):
        bpe.save(directory / names[0])
    elif isinstance(bpe, Gpt2Bpe):
        shutil.copyfile(bpe.encoder_json, directory / names[0])
        shutil.copyfile(bpe.vocab_bpe, directory / names[1])
    return names


def load_bpe(kind: str, directory: Path) -> Bpe:
    """Read what ``save_bpe`` wrote."""
    paths = [directory / name for name in FILES[kind]]
    return Gpt2Bpe(*paths) if kind == "gpt2" else from_codes(kind, *paths)


def _of_kind(kind: str, codes: LearnedBpe) -> Bpe:
    if kind == "learned":
        return codes
    if kind == "fastbpe":
        return FastBpe(codes)
    raise ValueError(f"codes are for --bpe learned or fastbpe, not {kind!r}")
