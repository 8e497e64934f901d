"""Turn the text streams into fairseq's binary files, as fairseq-preprocess would, and count what a dictionary lacks."""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hat_fairseq.data.binary import Binarized, binarize_text
from hat_fairseq.data.dictionary import SPECIAL, UNKNOWN, Dictionary

ROLE_LABELS = Path("text", "role.labels")  # the fixed dictionary of the role stream, in fairseq's format
LABELS = Path("text", "label.labels")  # likewise of the labels of examples
MOST_UNKNOWN = 0.5  # share of tokens that are not in the dictionary; above it the text is refused
KINDS = ("train", "valid", "test")  # of splits


def fairseq_commands(
    splits: Sequence[str], dictionary: Path | None, roles: bool, workers: int, blind: Sequence[str] = ()
) -> list[list[str]]:
    """The fairseq-preprocess commands, to be run in the output directory.

    Args:
        splits: those that have text files: train, and valid, valid1, ..., test, test1, ... as fairseq numbers them.
        dictionary: fixed dictionary of both sides; None to build one joined dictionary from the training text.
        roles: whether there is a role stream.
        blind: those of the splits that have no targets.
        workers: for the command as it is shown; the result does not depend on it.

    Raises:
        ValueError: a split with a name that fairseq would not give it.
    """
    start, prefixes = _command("bin", workers), _prefixes(splits)
    words = ["--srcdict", str(dictionary), "--tgtdict", str(dictionary)] if dictionary else ["--joined-dictionary"]
    pair = [*start, "--source-lang", "source", "--target-lang", "target"]
    with_targets = [split for split in splits if split not in blind]
    commands = [[*pair, *_prefixes(with_targets), *words]] if with_targets else []
    if blind:
        fixed = str(dictionary or Path("bin", "dict.source.txt"))
        commands.append([*pair, "--only-source", *_prefixes(blind), "--srcdict", fixed])
    if roles:
        commands.append([*start, "--source-lang", "role", "--only-source", *prefixes, "--srcdict", str(ROLE_LABELS)])
    return commands


def example_commands(
    splits: Sequence[str], labelled: Sequence[str], task: str, dictionary: Path | None, workers: int
) -> list[list[str]]:
    """The fairseq-preprocess commands for examples, to be run in the output directory.

    The files are where fairseq's own task ``sentence_prediction`` reads them, or for ``mlm`` its task ``masked_lm``.

    Args:
        splits: see ``fairseq_commands``.
        labelled: those of them that have labels.
        task: the kind of the examples.
        dictionary: fixed dictionary of the input; None to build one from the training text.
        workers: for the command as it is shown; the result does not depend on it.
    """
    words = ["--srcdict", str(dictionary)] if dictionary else []
    tokens = [*_command(str(input_directory(task)), workers), "--only-source", *_prefixes(splits, ".input0"), *words]
    if not labelled:
        return [tokens]
    label = [*_command("bin/label", workers), "--only-source", *_prefixes(labelled, ".label")]
    return [tokens, [*label, "--srcdict", str(LABELS)]]


def input_directory(task: str) -> Path:
    """The folder of the rows of examples and their dictionary, in the output directory."""
    return Path("bin") if task == "mlm" else Path("bin", "input0")


def run(commands: Sequence[Sequence[str]], directory: Path, shown_as: Path) -> dict[str, Binarized]:
    """Write what the commands would write in ``directory``, after printing them as typed for ``shown_as``.

    fairseq-preprocess needs longer for this than everything before it, most of it one token after the other in Python;
    what is written here has the same bytes, only ``preprocess.log`` begins with the command instead of all of
    fairseq's settings. Dictionaries are the same for source and target.

    Returns:
        The counts of each text, by its name: ``text/train.source``.
    """
    counts: dict[str, Binarized] = {}
    for command in commands:
        print(f"(cd {shlex.quote(str(shown_as))} && {shlex.join(command)})", flush=True)
        counts |= _run(_flags(command), directory, shlex.join(["python", *command[1:]]))
    return counts


def _run(flags: argparse.Namespace, directory: Path, shown: str) -> dict[str, Binarized]:
    sides = [flags.source_lang] + ([] if flags.only_source else [flags.target_lang])
    endings = {side: f".{side}" if side else "" for side in sides}
    destination = directory / flags.destdir
    destination.mkdir(parents=True, exist_ok=True)
    if flags.srcdict:
        dictionary = Dictionary.load(directory / flags.srcdict)
    else:
        dictionary = Dictionary.build(directory / f"{flags.trainpref}{ending}" for ending in endings.values())
    counts, log = {}, [shown]
    for side, ending in endings.items():
        dictionary.save(destination / f"dict{ending}.txt")
        pair = f".{flags.source_lang}-{flags.target_lang}" if side else ""
        for kind in KINDS:
            for number, prefix in enumerate(filter(None, (getattr(flags, f"{kind}pref") or "").split(","))):
                log.append(f"[{side}] Dictionary: {len(dictionary)} types")
                text = f"{prefix}{ending}"
                found = binarize_text(directory / text, dictionary, destination / f"{kind}{number or ''}{pair}{ending}")
                log.append(f"[{side}] {text}: {found} (by {SPECIAL[UNKNOWN]})")
                counts[text] = found
    log.append(f"Wrote preprocessed data to {flags.destdir}")
    (destination / "preprocess.log").write_text("\n".join(log) + "\n", encoding="utf-8")
    return counts


def check_known(counts: Mapping[str, Binarized]) -> None:
    """Raises ValueError if more than half of the tokens of a text are not in the dictionary."""
    for text, found in counts.items():
        if found.unknown > MOST_UNKNOWN * found.tokens:
            raise ValueError(
                f"{text}: {found.unknown} of {found.tokens} tokens are not in the dictionary: text of another language "
                "than the vocabulary is of, or in another encoding"
            )


def _flags(command: Sequence[str]) -> argparse.Namespace:
    """The flags of a command of this module; the number of workers does not change the result."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("destdir", "workers", "source-lang", "target-lang", "srcdict", "tgtdict"):
        parser.add_argument(f"--{name}")
    for kind in KINDS:
        parser.add_argument(f"--{kind}pref")
    for name in ("only-source", "joined-dictionary"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args(command[command.index("fairseq_cli.preprocess") + 1 :])


def _command(directory: str, workers: int) -> list[str]:
    return [sys.executable, "-P", "-m", "fairseq_cli.preprocess", "--destdir", directory, "--workers", str(workers)]


def _prefixes(splits: Sequence[str], ending: str = "") -> list[str]:
    prefixes = []
    for kind in KINDS:
        names = [split for split in splits if split.rstrip("0123456789") == kind]
        if names:
            prefixes += [f"--{kind}pref", ",".join(f"text/{name}{ending}" for name in names)]
        if names != [f"{kind}{number or ''}" for number in range(len(names))]:
            raise ValueError(f"fairseq-preprocess cannot number the splits {', '.join(splits)}; use test, test1, ...")
    return prefixes


def write_role_labels(labels: Sequence[str], directory: Path) -> None:
    """Write the role stream's dictionary: its labels in the order given."""
    (directory / ROLE_LABELS).write_text("".join(f"{label} 1\n" for label in labels), encoding="utf-8")
