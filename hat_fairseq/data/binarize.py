"""Turn the text streams into fairseq's binary files with fairseq-preprocess, and count what its dictionary lacks."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hat_fairseq.data.text import CONTROL_TOKENS

ROLE_LABELS = Path("text", "role.labels")  # the fixed dictionary of the role stream, in fairseq's format
LABELS = Path("text", "label.labels")  # likewise of the labels of examples


def fairseq_commands(splits: Sequence[str], dictionary: Path | None, roles: bool, workers: int) -> list[list[str]]:
    """The fairseq-preprocess commands, to be run in the output directory.

    Args:
        splits: those that have text files: train, and valid, valid1, ..., test, test1, ... as fairseq numbers them.
        dictionary: fixed dictionary of both sides; None to build one joined dictionary from the training text.
        roles: whether there is a role stream.
        workers: processes of fairseq-preprocess; the result does not depend on it.

    Raises:
        ValueError: a split with a name that fairseq would not give it.
    """
    start, prefixes = _command("bin", workers), _prefixes(splits)
    words = ["--srcdict", str(dictionary), "--tgtdict", str(dictionary)] if dictionary else ["--joined-dictionary"]
    commands = [[*start, "--source-lang", "source", "--target-lang", "target", *prefixes, *words]]
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
        workers: processes of fairseq-preprocess; the result does not depend on it.
    """
    words = ["--srcdict", str(dictionary)] if dictionary else []
    tokens = [*_command(str(input_directory(task)), workers), "--only-source", *_prefixes(splits, ".input0"), *words]
    if not labelled:
        return [tokens]
    label = [*_command("bin/label", workers), "--only-source", *_prefixes(labelled, ".label")]
    return [tokens, [*label, "--srcdict", str(LABELS)]]


def input_directory(task: str) -> Path:
    """Where the rows of examples and their dictionary are, in the output directory."""
    return Path("bin") if task == "mlm" else Path("bin", "input0")


def run_fairseq(commands: Sequence[Sequence[str]], directory: Path, shown_as: Path) -> None:
    """Run the commands in ``directory``, after printing them as they would be typed for ``shown_as``.

    Raises:
        ValueError: fairseq-preprocess failed; with the end of its output.
    """
    for command in commands:
        print(f"(cd {shlex.quote(str(shown_as))} && {shlex.join(command)})", flush=True)
        done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            tail = " | ".join(done.stdout.strip().splitlines()[-3:])
            raise ValueError(f"fairseq-preprocess ended with status {done.returncode}: {tail}")


def _command(directory: str, workers: int) -> list[str]:
    return [sys.executable, "-m", "fairseq_cli.preprocess", "--destdir", directory, "--workers", str(workers)]


def _prefixes(splits: Sequence[str], ending: str = "") -> list[str]:
    prefixes = []
    for kind in ("train", "valid", "test"):
        names = [split for split in splits if split.rstrip("0123456789") == kind]
        if names:
            prefixes += [f"--{kind}pref", ",".join(f"text/{name}{ending}" for name in names)]
        if names != [f"{kind}{number or ''}" for number in range(len(names))]:
            raise ValueError(f"fairseq-preprocess cannot number the splits {', '.join(splits)}; use test, test1, ...")
    return prefixes


def unknown_tokens(text: Path, dictionary: Path) -> int:
    """How many tokens of ``text`` are not in fairseq's ``dictionary`` and so became ``<unk>``."""
    with open(dictionary, encoding="utf-8", newline="\n") as file:
        known = {line.rsplit(" ", 1)[0] for line in file} | set(CONTROL_TOKENS[:4])
    with open(text, encoding="utf-8", newline="\n") as file:
        return sum(token not in known for line in file for token in line.split())


def write_role_labels(labels: Sequence[str], directory: Path) -> None:
    """Write the role stream's dictionary: its labels in the order given."""
    (directory / ROLE_LABELS).write_text("".join(f"{label} 1\n" for label in labels), encoding="utf-8")
