"""Writes fairseq's binary datasets without fairseq; the bytes are those of fairseq-preprocess."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hat_fairseq.data.dictionary import EOS, SPECIAL, UNKNOWN, Dictionary, read_tokens

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_SMALL = 65500  # below it fairseq writes a dictionary's numbers in 16 bits
_CODES = {"<u2": 8, "<u4": 9}  # how the index names the type


@dataclass(frozen=True)
class Binarized:
    """Counts of a text: lines, tokens including `</s>`, and tokens missing from the dictionary."""

    lines: int
    tokens: int
    unknown: int

    def __str__(self) -> str:
        percent = 100 * self.unknown / self.tokens if self.tokens else 0.0
        return f"{self.lines} sents, {self.tokens} tokens, {percent:.3}% replaced"


def binarize_text(text: Path, dictionary: Dictionary, prefix: Path) -> Binarized:
    """Write `PREFIX.bin` (token ids, `</s>` after each line) and `PREFIX.idx` (offsets of the lines).

    Args:
        text: one row on each line, tokens with spaces between them.
        dictionary: tokens that it lacks become `<unk>`.
        prefix: of the two files, without their endings.
    """
    kind = "<u2" if len(dictionary) < _SMALL else "<u4"
    number_of = dictionary.numbers.__getitem__
    sizes, unknown = [], 0
    with open(f"{prefix}.bin", "wb") as file:
        for tokens in read_tokens(text):
            tokens.append(SPECIAL[EOS])
            numbers = np.fromiter(map(number_of, tokens), kind, len(tokens))
            if missing := int((numbers == UNKNOWN).sum()):
                unknown += missing - tokens.count(SPECIAL[UNKNOWN])
            file.write(numbers.tobytes())
            sizes.append(len(tokens))
    _write_index(Path(f"{prefix}.idx"), np.array(sizes, np.int64), kind)
    return Binarized(len(sizes), sum(sizes), unknown)


def _write_index(path: Path, sizes: np.ndarray, kind: str) -> None:
    """The length of each line, and the byte at which it begins."""
    ends = np.cumsum(sizes) * np.dtype(kind).itemsize
    begins = np.concatenate([[0], ends[:-1]]) if len(sizes) else ends
    with open(path, "wb") as file:
        file.write(_MAGIC + struct.pack("<QBQ", _VERSION, _CODES[kind], len(sizes)))
        file.write(sizes.astype("<i4").tobytes() + begins.astype("<i8").tobytes())
