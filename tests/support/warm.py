"""Commands without the seconds that importing torch and fairseq takes: one process imports them and forks for each.

A command is what follows `python -m`: the module, run as `__main__` by the forked process, and its arguments.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from commands import REPOSITORY

IMPORTED = ("fairseq_cli.train", "hat_fairseq.inference.predict", "hat_fairseq.data.preprocess")


class WarmPython:
    """The process that has imported everything; use it in a `with` statement."""

    def __enter__(self) -> WarmPython:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(self, *error: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def run(self, words: Sequence[str], cwd: Path, output: Path) -> str:
        """What `python -m` prints with these words; raises where it fails."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([list(words), str(cwd), str(output)]) + "\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline().strip()
        text = output.read_text(encoding="utf-8")
        if status != "0":
            raise AssertionError(f"python -m {' '.join(words)}\nexit {status or 'of the warm process'}\n{text}")
        return text


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print when they are imported is no answer
    for module in IMPORTED:
        __import__(module)
    for line in sys.stdin:
        words, cwd, output = json.loads(line)
        child = os.fork()
        if child == 0:
            become(words, cwd, output)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


def become(words: list[str], cwd: str, output: str) -> None:
    """Run the command and leave the process."""
    status: object = 0
    os.chdir(cwd)
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = list(words)
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    serve()
