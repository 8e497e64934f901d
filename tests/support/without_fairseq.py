"""Python in an environment without fairseq, and without what only fairseq needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from commands import REPOSITORY

ABSENT = ("fairseq", "fairseq_cli", "omegaconf", "hydra")


def link_packages(folder: Path) -> Path:
    """A folder with links to everything that is installed here, but for `ABSENT` and installations of this package."""
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not re.match(r"(fairseq|omegaconf|hydra|hat_fairseq|__editable__)", path.name):
            (folder / path.name).symlink_to(path)
    return folder


def run_code(code: str, packages: Path, *arguments: object) -> str:
    """What a new process prints that runs the code with this repository and the linked packages (`-S`: no others)."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{packages}"}
    words = [sys.executable, "-S", "-c", code, *map(str, arguments)]
    result = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300, cwd=packages)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
