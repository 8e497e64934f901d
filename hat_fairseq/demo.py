"""Train a small model on the AMI meetings, in 8 minutes on a CPU; summarize, score and look at the test meetings."""

import argparse
import os
import shutil
import sys
from pathlib import Path

PASSES_FLAGS_ON = True
SCRIPT = "examples/ami_demo.sh"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Shows how to call the command; the training reads the flags."""
    parser.usage = "hat demo [flags of the training ...]"
    parser.epilog = "Everything is written into the current folder: data-bin/, checkpoints/, results/."


def main(args: argparse.Namespace) -> int:
    """Becomes the process of the script, which calls this installation's `hat`."""
    folder = Path(__file__).resolve().parent
    script = next((each for each in (folder / SCRIPT, folder.parent / SCRIPT) if each.is_file()), None)
    bash = shutil.which("bash")
    if script is None or bash is None:
        raise ValueError(f"the demo needs bash and {SCRIPT} of this package")
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    os.execve(bash, [bash, str(script), *args.others], os.environ | {"PATH": search})
