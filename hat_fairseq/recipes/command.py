"""Run a recipe of configs/: preprocess, train, generate or predict.

    hat recipe {preprocess,train,generate,predict} NAME [flags of the command ...]
    DRY_RUN=1 hat recipe train NAME            only prints the command, ready to paste

The command is printed and then executed. Flags behind NAME come last and win over the recipe's; `--FLAG=null` removes
a flag of the recipe. --gpus, --update-batch-size and --update-max-tokens state the size of an update. A recipe that
predicts has a second command, `hat score`, which runs when the first has succeeded.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from collections.abc import Sequence

from . import build, files, update


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("step", choices=list(build.COMMANDS), help="what to run")
    parser.add_argument("name", nargs="?", metavar="NAME", help=f"a recipe: {', '.join(files.names())}")
    parser.add_argument("flags", nargs=argparse.REMAINDER, metavar="...", help="flags of the command; they win")


def main(args: argparse.Namespace) -> int:
    """Prints the commands of a recipe and, unless DRY_RUN=1, runs them; the last one replaces this process."""
    if args.name is None:
        raise ValueError(f"`hat recipe {args.step}` needs the name of a recipe: {', '.join(files.names())}")
    commands = build.build_commands(args.step, args.name, args.flags)
    if os.environ.get("RANK", "0") == "0":  # torchrun starts every process with the same words
        comment = update.describe(commands[0])
        print(*([f"# {comment}"] if comment else []), " &&\n".join(map(render, commands)), sep="\n", flush=True)
    if os.environ.get("DRY_RUN", "0") not in ("", "0"):
        return 0
    for command in commands[:-1]:
        if status := subprocess.call(command):
            return status
    os.execv(commands[-1][0], commands[-1])


def render(command: Sequence[str]) -> str:
    """Returns the command for a shell, one flag a line."""
    lines: list[str] = []
    for word in command:
        if not lines or word.startswith("--"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += " " + shlex.quote(word)
    return " \\\n    ".join(lines)
