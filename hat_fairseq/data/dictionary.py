"""fairseq's dictionary without importing fairseq: the same files and the same indices; labels as symbols of one.

A label may be any text: white space, percent signs and whole names of control tokens (`<pad>`) are written as in a
URL, so that each label is one token and every token one label.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from hat_fairseq.data.text import CONTROL_TOKENS

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3 of every dictionary
BOS, PAD, EOS, UNKNOWN = range(4)
SPECIAL_IDS = {"bos_token_id": BOS, "pad_token_id": PAD, "eos_token_id": EOS}  # under the names of transformers
MAX_UNKNOWN = 0.5  # fraction of tokens that are not in the dictionary; above it the text is refused
WHY_UNKNOWN = (
    "text of another language, or encoded for another dictionary, or a BPE that was learned with more codes "
    "(--num-codes) than its few training texts support"
)
NO_LABEL = "<pad>"  # where a token has no label; fairseq's padding, which no loss counts
#: The dictionary of each stream in `bin`; the first that exists, because a folder is of one kind (`Kind.files`).
DICTIONARIES = {
    "source": ("dict.source.txt", "input0/dict.txt", "dict.txt"),
    "target": ("dict.target.txt",),
    "role": ("dict.role.txt",),
    "label": ("label/dict.txt",),
}
#: The ends of the names of a model's tensors that say which dictionaries it was trained with, and their streams.
LABELS_FINGERPRINT = "labels_fingerprint"  # the tensor of a classification head that says what its classes are
FINGERPRINTS = {
    "encoder.dictionary_fingerprint": "source",
    "decoder.dictionary_fingerprint": "target",
    "segment_dictionary_fingerprint": "role",
    LABELS_FINGERPRINT: "label",
}
_MULTIPLE = 8  # fairseq-preprocess fills the dictionaries that it builds up to a multiple of this
_OVERWRITE = " #fairseq:overwrite"


class Dictionary:
    """Symbols and their counts as in the file, without the special ones; the index of a symbol is its position."""

    def __init__(self, counts: Iterable[tuple[str, int]] = ()):
        self.counts = list(counts)
        self.symbols = [*SPECIAL, *(symbol for symbol, _ in self.counts)]
        self.ids = _Ids((symbol, number) for number, symbol in enumerate(self.symbols))

    def __len__(self) -> int:
        return len(self.symbols)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads `symbol count` on each line, marked if it overwrites an equal one; ValueError with file and line."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}:{error.object[: error.start].count(10) + 1}: invalid UTF-8") from error
        seen = set(SPECIAL)
        counts = []
        for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], start=1):
            line = line.rstrip()
            overwrite = line.endswith(_OVERWRITE)
            symbol, separator, count = line.removesuffix(_OVERWRITE).rpartition(" ")
            try:
                counts.append((symbol, int(count if separator else "")))
            except ValueError:
                raise ValueError(f"{path}:{number}: expected 'symbol count', found {line!r:.60}") from None
            if symbol in seen and not overwrite:
                raise ValueError(f"{path}:{number}: the symbol {symbol!r} occurs twice")
            seen.add(symbol)
        return cls(counts)

    @classmethod
    def build(cls, seen: Counter[str]) -> Self:
        """Returns all tokens, the most frequent first, equally frequent ones in alphabetical order."""
        symbols = (item for item in seen.items() if item[0] not in SPECIAL)
        counts = sorted(symbols, key=lambda item: (-item[1], item[0]))
        fill = 0
        while (len(SPECIAL) + len(counts)) % _MULTIPLE:
            if (symbol := f"madeupword{fill:04d}") not in seen:
                counts.append((symbol, 0))
            fill += 1
        return cls(counts)

    @classmethod
    def of(cls, symbols: Iterable[str]) -> Self:
        """Returns these symbols, whose counts do not matter. Of labels, class i is symbol i after the special ones."""
        return cls((symbol, 1) for symbol in symbols)

    def save(self, path: str | Path) -> None:
        """Writes the file that `load` and fairseq read."""
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{symbol} {count}\n" for symbol, count in self.counts)


def fingerprint(symbols: Iterable[str]) -> list[int]:
    """Returns the SHA-256 of symbols in their order, as 8 numbers of 32 bits."""
    digest = hashlib.sha256("\n".join(symbols).encode()).digest()
    return [int.from_bytes(digest[i : i + 4], "big") for i in range(0, 32, 4)]


def fingerprint_of_labels(labels: Iterable[str]) -> list[int]:
    """Returns the fingerprint of the dictionary of these labels, in the order of their classes."""
    return fingerprint([*SPECIAL, *map(label_token, labels)])


def check_fingerprints(
    recorded: Mapping[str, Sequence[int]], dictionaries: Mapping[str, Dictionary | None], folder: str | Path
) -> None:
    """Compares dictionaries by stream with those of a training; ValueError with the folder if one differs.

    `recorded`: by the name of the model's tensor; a model of another origin has none.
    """
    for name, words in recorded.items():
        stream = next((stream for end, stream in FINGERPRINTS.items() if name.endswith(end)), None)
        dictionary = dictionaries.get(stream or "")
        if dictionary is not None and list(words) != fingerprint(dictionary.symbols):
            raise ValueError(
                f"{folder}: the dictionary of the {stream} is not the one that the model was trained with; copy the "
                "folder again"
            )


class _Ids(dict[str, int]):
    """Symbol to index; all other strings have the index of `<unk>`."""

    def __missing__(self, symbol: str) -> int:
        return UNKNOWN


def check_known(rows: Iterable[Any], what: str) -> None:
    """Raises ValueError if most tokens of rows (arrays of ids, of at most 100 rows) are not in the dictionary."""
    if problem := mostly_unknown([token for row in islice(rows, 100) for token in row.tolist()]):
        raise ValueError(f"{what}: {problem}")


def mostly_unknown(ids: Sequence[int]) -> str:
    """Says that most of the tokens are not in the dictionary, and why that may be; nothing if they are."""
    unknown = ids.count(UNKNOWN)
    if unknown <= MAX_UNKNOWN * len(ids):
        return ""
    return f"{unknown} of {len(ids)} tokens are not in the dictionary: {WHY_UNKNOWN}"


def find_dictionary(folder: Path, stream: str) -> Path | None:
    """Returns the dictionary of a stream in a `bin` folder, or None."""
    return next((path for name in DICTIONARIES[stream] if (path := folder / name).is_file()), None)


def label_token(label: str) -> str:
    """Maps `not hyper%partisan` -> `not%20hyper%25partisan`, `<pad>` -> `%3Cpad>`."""
    if label in CONTROL_TOKENS:
        return quote(label[0]) + label[1:]
    special = {c for c in label if c == "%" or c.isspace() or not c.isprintable()}
    return "".join(quote(c, safe="", errors="surrogatepass") if c in special else c for c in label)


def label_of(token: str) -> str:
    """Inverts `label_token`."""
    return unquote(token, errors="surrogatepass")


def read_labels(path: str | Path) -> list[str]:
    """Returns the labels of a dictionary of label tokens, in the order of their classes."""
    return [label_of(token) for token, _ in Dictionary.load(path).counts]
