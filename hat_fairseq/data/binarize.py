"""Turn the text streams into fairseq's binary files, as fairseq-preprocess would, and count what a dictionary lacks."""

import shlex
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hat_fairseq.data.dictionary import EOS, SPECIAL, UNKNOWN, Dictionary, read_tokens

ROLE_LABELS = Path("text", "role.labels")  # the fixed dictionary of the role stream, in fairseq's format
LABELS = Path("text", "label.labels")  # likewise of the labels of examples
MOST_UNKNOWN = 0.5  # share of tokens that are not in the dictionary; above it the text is refused
KINDS = ("train", "valid", "test")  # of splits
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
    """Write `PREFIX.bin` (token ids, `</s>` after each line) and `PREFIX.idx` (offsets) of a text of one row a line."""
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


@dataclass(frozen=True)
class Binarization:
    """One call of fairseq-preprocess in the output directory; ValueError for splits that fairseq names otherwise."""

    destination: Path  # folder
    splits: tuple[str, ...]  # train, and valid, valid1, ..., test, test1, ... as fairseq numbers them
    streams: tuple[str, ...]  # the streams to read, `text/SPLIT.STREAM`; two of them share a dictionary
    pair: tuple[str, str] | None = None  # names of the two sides in fairseq's file names; None for names without
    dictionary: Path | None = None  # a fixed dictionary; None to build one from the training text

    def __post_init__(self) -> None:
        for kind in KINDS:
            names = [split for split in self.splits if split.rstrip("0123456789") == kind]
            if names != [f"{kind}{number or ''}" for number in range(len(names))]:
                raise ValueError(f"fairseq cannot number the splits {', '.join(self.splits)}; use test, test1, ...")

    def command(self, workers: int) -> list[str]:
        """The words of the command; the result does not depend on the number of workers."""
        words = [sys.executable, "-P", "-m", "fairseq_cli.preprocess", "--destdir", str(self.destination)]
        words += ["--workers", str(workers)]
        if self.pair:
            words += ["--source-lang", self.pair[0]]
            words += ["--target-lang", self.pair[1]] if self.pair[1] != "None" else []
        words += ["--only-source"] if len(self.streams) == 1 else []
        ending = "" if self.pair else f".{self.streams[0]}"
        for kind in KINDS:
            names = [f"text/{split}{ending}" for split in self.splits if split.rstrip("0123456789") == kind]
            words += [f"--{kind}pref", ",".join(names)] if names else []
        if self.dictionary is None:
            return words + (["--joined-dictionary"] if len(self.streams) > 1 else [])
        words += ["--srcdict", str(self.dictionary)]
        return words + (["--tgtdict", str(self.dictionary)] if len(self.streams) > 1 else [])

    def run(self, directory: Path) -> dict[str, Binarized]:
        """Write what the command would write in a directory; returns the counts of each text by name: `train.source`.

        fairseq-preprocess needs longer for this than everything before it. What is written here has the same bytes;
        only `preprocess.log` begins with the command instead of all of fairseq's settings.
        """
        destination = directory / self.destination
        destination.mkdir(parents=True, exist_ok=True)
        if self.dictionary:
            dictionary = Dictionary.load(directory / self.dictionary)
        else:
            dictionary = Dictionary.build(directory / f"text/{self.splits[0]}.{stream}" for stream in self.streams)
        counts, log = {}, [shlex.join(["python", *self.command(1)[1:]])]
        for stream in self.streams:
            side, ending = (stream, f".{'-'.join(self.pair)}.{stream}") if self.pair else (None, "")
            dictionary.save(destination / f"dict{f'.{side}' if side else ''}.txt")
            for split in self.splits:
                log.append(f"[{side}] Dictionary: {len(dictionary)} types")
                text = f"{split}.{stream}"
                found = binarize_text(directory / "text" / text, dictionary, destination / f"{split}{ending}")
                log.append(f"[{side}] text/{text}: {found} (by {SPECIAL[UNKNOWN]})")
                counts[text] = found
        log.append(f"Wrote preprocessed data to {self.destination}")
        (destination / "preprocess.log").write_text("\n".join(log) + "\n", encoding="utf-8")
        return counts


def of_documents(splits: Sequence[str], blind: list[str], dictionary: Path | None, roles: bool) -> list[Binarization]:
    """The calls for fairseq's translation task: sources, targets (not of the splits `blind`), the role stream."""
    with_targets = tuple(split for split in splits if split not in blind)
    pair, calls, folder = ("source", "target"), [], Path("bin")
    if with_targets:
        calls.append(Binarization(folder, with_targets, pair, pair, dictionary))
    if blind:
        fixed = dictionary or Path("bin", "dict.source.txt")
        calls.append(Binarization(folder, tuple(blind), ("source",), pair, fixed))
    if roles:
        calls.append(Binarization(folder, tuple(splits), ("role",), ("role", "None"), ROLE_LABELS))
    return calls


def of_rows(splits: Sequence[str], labelled: Iterable[str], dictionary: Path | None, folder: str) -> list[Binarization]:
    """The calls for `sentence_prediction`, or in the folder `bin` itself for `masked_lm`: rows and labels."""
    calls = [Binarization(Path("bin", folder), tuple(splits), ("source",), None, dictionary)]
    if labelled := tuple(labelled):
        calls.append(Binarization(Path("bin", "label"), labelled, ("label",), None, LABELS))
    return calls


def run(calls: Iterable[Binarization], directory: Path) -> dict[str, Binarized]:
    """Run the calls in a directory; returns the counts of each text by name."""
    counts: dict[str, Binarized] = {}
    for call in calls:
        counts |= call.run(directory)
    check_known(counts)
    return counts


def check_known(counts: Mapping[str, Binarized]) -> None:
    """Raises ValueError if more than half of the tokens of a text are not in the dictionary."""
    for text, found in counts.items():
        if found.unknown > MOST_UNKNOWN * found.tokens:
            raise ValueError(
                f"text/{text}: {found.unknown} of {found.tokens} tokens are not in the dictionary: text of another "
                "language than the vocabulary is of, or in another encoding; choose another --bpe, or leave out "
                "--vocabulary to learn one from this text"
            )
