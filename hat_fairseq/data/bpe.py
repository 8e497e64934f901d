"""The interface `Bpe` of all BPEs, and how they are saved and loaded."""

from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

from hat_fairseq.data.gpt2_bpe import Gpt2Bpe
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.sentencepiece_bpe import MODEL, SentencePieceBpe

KINDS = ("learned", "gpt2", "sentencepiece")
FILES = {"learned": ("bpe.codes",), "gpt2": ("encoder.json", "vocab.bpe"), "sentencepiece": (MODEL,), "none": ()}


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

    @property
    def save(self) -> Callable[..., None]:
        """Writes the files of this kind, `FILES`, to their paths."""


class NoBpe:
    """Tokens are what stands between white space: for sequences of symbols."""

    kind, separator = "none", " "

    def encode(self, text: str) -> list[str]:
        return text.split()

    def decode(self, tokens: Iterable[str]) -> str:
        return " ".join(tokens)

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        return list(pairwise(accumulate(map(len, tokens), initial=0)))

    def save(self) -> None:
        pass


def load_bpe(kind: str, directory: Path) -> Bpe:
    """Reads the files that `Bpe.save` wrote into a directory."""
    load: dict[str, Any] = {"learned": LearnedBpe.load, "gpt2": Gpt2Bpe, "sentencepiece": SentencePieceBpe}
    return load.get(kind, NoBpe)(*(directory / name for name in FILES[kind]))
