"""Contenders that are whole commands, from their start to their end.

Python keeps the bytecode of what it imports, unless it is told not to; all contenders find theirs after the warm-up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

# A process's own record of its largest child begins with its own size, so a small process stands between.
_BETWEEN = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(status)
"""

_BYTECODE = tempfile.TemporaryDirectory(prefix="bytecode-")


def surroundings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: this process's, a place for bytecode, and `environment`."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": _BYTECODE.name, **(environment or {})}


def run_commands(commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None) -> int:
    """Run commands one after the other; returns the most bytes that one of their processes had in memory.

    `environment` is added to that of this process.

    Raises:
        RuntimeError: one failed; with the end of its output.
    """
    most = 0
    for command in commands:
        words = [sys.executable, "-S", "-c", _BETWEEN, *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, env=surroundings(environment))
        if done.returncode:
            tail = " | ".join(done.stderr.strip().splitlines()[-3:])
            raise RuntimeError(f"{' '.join(map(str, command))} ended with status {done.returncode}: {tail}")
        most = max(most, int(done.stdout))
    return most
