"""Timing of whole commands, from start to end.

Bytecode is cached even if PYTHONDONTWRITEBYTECODE is set, so that after the warm-up every contender finds its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

# The peak memory of a child includes that of its parent at the fork, so a small process starts the command.
_BETWEEN = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(status)
"""

_BYTECODE = tempfile.TemporaryDirectory(prefix="bytecode-")


def surroundings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: that of this process, a folder for bytecode, and `environment`."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": _BYTECODE.name, **(environment or {})}


def run_commands(commands: Sequence[Sequence[str]], environment: Mapping[str, str] | None = None) -> int:
    """Runs commands one after the other and returns the peak bytes of their processes.

    Args:
        environment: is added to that of this process.

    Raises:
        RuntimeError: a command failed; the message ends with its last output.
    """
    peak = 0
    for command in commands:
        words = [sys.executable, "-S", "-c", _BETWEEN, *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, env=surroundings(environment))
        if done.returncode:
            tail = " | ".join(done.stderr.strip().splitlines()[-3:])
            raise RuntimeError(f"{' '.join(map(str, command))} ended with status {done.returncode}: {tail}")
        peak = max(peak, int(done.stdout))
    return peak
