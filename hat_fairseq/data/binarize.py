"""Turn the text streams into fairseq's binary files, as fairseq-preprocess would, and count what a dictionary lacks."""

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hat_fairseq.data.binary import Binarized, binarize_text
from hat_fairseq.data.dictionary import SPECIAL, UNKNOWN, Dictionary

ROLE_LABELS = Path("text", "role.labels")  # the fixed dictionary of the role stream, in fairseq's format
LABELS = Path("text", "label.labels")  # likewise of the labels of examples
MOST_UNKNOWN = 0.5  # share of tokens that are not in the dictionary; above it the text is refused
KINDS = ("train", "valid", "test")  # of splits


@dataclass(frozen=True)
class Binarization:
    """One call of fairseq-preprocess, to be run in the output directory.

    Args:
        destination: the folder to write into.
        splits: train, and valid, valid1, ..., test, test1, ... as fairseq numbers them.
        streams: the streams to read, `text/SPLIT.STREAM`; two of them share a dictionary.
        pair: the names of the two sides as fairseq's file names have them; None for file names without.
        dictionary: a fixed dictionary; None to build one from the training text.

    Raises:
        ValueError: a split with a name that fairseq would not give it.
    """

    destination: Path
    splits: tuple[str, ...]
    streams: tuple[str, ...]
    pair: tuple[str, str] | None = None
    dictionary: Path | None = None

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
        """Write what the command would write in a directory.

        fairseq-preprocess needs longer for this than everything before it, most of it one token after the other in
        Python; what is written here has the same bytes, only `preprocess.log` begins with the command instead of all
        of fairseq's settings.

        Returns:
            The counts of each text, by its name: `train.source`.
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


def of_documents(
    splits: Sequence[str], blind: Iterable[str], dictionary: Path | None, roles: bool
) -> list[Binarization]:
    """What fairseq's translation reads: sources and targets, and the role stream.

    Args:
        blind: those of the splits that have no targets.
        dictionary: of both sides.
    """
    blind = tuple(blind)
    with_targets = tuple(split for split in splits if split not in blind)
    pair, calls, folder = ("source", "target"), [], Path("bin")
    if with_targets:
        calls.append(Binarization(folder, with_targets, pair, pair, dictionary))
    if blind:
        fixed = dictionary or Path("bin", "dict.source.txt")
        calls.append(Binarization(folder, blind, ("source",), pair, fixed))
    if roles:
        calls.append(Binarization(folder, tuple(splits), ("role",), ("role", "None"), ROLE_LABELS))
    return calls


def of_rows(splits: Sequence[str], labelled: Iterable[str], dictionary: Path | None, folder: str) -> list[Binarization]:
    """What fairseq's `sentence_prediction`, or in the folder `bin` itself its `masked_lm`, reads: rows and labels."""
    calls = [Binarization(Path("bin", folder), tuple(splits), ("source",), None, dictionary)]
    if labelled := tuple(labelled):
        calls.append(Binarization(Path("bin", "label"), labelled, ("label",), None, LABELS))
    return calls


def run(calls: Iterable[Binarization], directory: Path, shown_as: Path, workers: int) -> dict[str, Binarized]:
    """Run the calls in a directory, after printing their commands as typed for the directory `shown_as`."""
    counts: dict[str, Binarized] = {}
    for call in calls:
        print(f"(cd {shlex.quote(str(shown_as))} && {shlex.join(call.command(workers))})", flush=True)
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
