"""Try the installation in half a minute: preprocess, train for two updates, generate, in a temporary folder."""

import argparse
import subprocess
import sys
import tempfile
import time

from .fairseq_commands import require_fairseq

#: Few documents and a narrow model; `hat` runs each in turn.
COMMANDS = (
    "recipe preprocess ami_small --limit 8 --num-codes 300",
    "recipe train ami_small --max-update 2 --encoder-embed-dim 16 --decoder-embed-dim 16",
    "recipe generate ami_small --min-len 1 --max-len-b 20 --score=null",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds none."""


def main(args: argparse.Namespace) -> int:
    """Runs the commands; the first that fails shows its output, and the status is 1. ValueError without fairseq."""
    require_fairseq("hat selftest")
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            start = time.monotonic()
            words = [sys.executable, "-P", "-m", "hat_fairseq.cli", *command.split()]
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                print(done.stdout, end="")
                print(f"hat {command}: failed with status {done.returncode}", file=sys.stderr)
                return 1
            print(f"ok  hat {command} ({time.monotonic() - start:.0f} s)", flush=True)
    print("the installation works")
    return 0
