"""Train or validate: fairseq-train and fairseq-validate with this package.

The process of fairseq runs this file as a script, so that fairseq itself imports the package, as its --user-dir.
"""

import argparse
import importlib
import importlib.util
import logging
import os
import sys
import warnings
from pathlib import Path

PASSES_FLAGS_ON = True
PACKAGE = Path(__file__).resolve().parent
# fairseq's import advises to install tensorboardX, which nothing here uses, and torch 2.14 warns of its decorators.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Shows how to call the command; fairseq reads the flags."""
    verb = parser.prog.split()[-1]
    parser.usage = f"hat {verb} DATA [flags of fairseq-{verb} and of this package ...]"
    chosen = "--task document_to_text" + " --arch hat_transformer_tiny" * (verb == "train")
    parser.epilog = (
        f"All flags, with those of the task and the model that you name: fairseq-{verb} --user-dir {PACKAGE} "
        f"{chosen} --help"
    )


def main(args: argparse.Namespace) -> int:
    """Becomes the process of fairseq's command, which obeys signals and shows tracebacks as fairseq's does."""
    if not args.others:
        raise ValueError(f"`hat {args.verb}` needs the bin folder of `hat preprocess`, such as data-bin/mine/bin")
    if importlib.util.find_spec("fairseq_cli") is None:
        raise ValueError("fairseq is not installed: pip install 'hat_fairseq[train]'")
    # -P: the current directory is no place to import from
    os.execv(sys.executable, [sys.executable, "-P", __file__, args.verb, *args.others])


def run(verb: str, *flags: str) -> None:
    """Runs a command of fairseq in this process, with this package unless the flags name another --user-dir."""
    user_dir = [] if any(flag.startswith("--user-dir") for flag in flags) else ["--user-dir", str(PACKAGE)]
    sys.argv = [f"hat {verb}", *flags, *user_dir]
    importlib.import_module(f"fairseq_cli.{verb}").cli_main()


if __name__ == "__main__":
    run(*sys.argv[1:])
