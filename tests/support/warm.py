"""Commands without the seconds that importing torch and fairseq takes: one process imports them and forks for each.

A command is what follows `python -m`: the module, run as `__main__` by the forked process, and its arguments. Where the
command becomes another Python program (`os.execv`), as `hat train` does, the forked process goes on with that program.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import runpy
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from commands import HEEDING, REPOSITORY

COMMANDS = ("train", "generate", "preprocess", "validate", "interactive")
MODULES = {f"fairseq-{name}": f"fairseq_cli.{name}" for name in COMMANDS} | {"hat": "hat_fairseq.cli"}  # of programs
IMPORTED = ("fairseq_cli.train", "hat_fairseq.inference.predict", "hat_fairseq.data.preprocess")
# What a training imports when it makes its optimizer and reads its settings: half a second each.
IMPORTED += ("torch._dynamo", "torch.distributed.fsdp", "hydra.experimental.compose")


class WarmPython:
    """The process that has imported everything; use it in a `with` statement."""

    def __enter__(self) -> WarmPython:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}
        words = [*HEEDING, sys.executable, __file__]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.free, self.answers = threading.Lock(), queue.SimpleQueue[str]()
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put("it has ended")

    def __exit__(self, *error: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def run(self, words: Sequence[str], cwd: Path, output: Path) -> str:
        """What `python -m` prints with these words; raises where it fails."""
        if status := self.status(words, cwd, output):
            raise AssertionError(f"python -m {' '.join(words)}\nexit {status}\n{output.read_text(encoding='utf-8')}")
        return output.read_text(encoding="utf-8")

    def completed(self, words: Sequence[str], cwd: Path, check: bool = True) -> subprocess.CompletedProcess:
        """What `subprocess.run` of `python -m` with these words returns."""
        with tempfile.TemporaryDirectory() as folder:
            output, errors = Path(folder, "output"), Path(folder, "errors")
            status = self.status(words, cwd, output, errors)
            texts = output.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")
        if check and status:
            raise AssertionError(f"python -m {' '.join(words)}\nexit {status}\n{texts[0]}\n{texts[1]}")
        return subprocess.CompletedProcess(words, status, *texts)

    def status(self, words: Sequence[str], cwd: Path, output: Path, errors: Path | None = None) -> int:
        """The exit status of `python -m` with these words; negative for a signal. Without `errors` one file has all."""
        self.start(words, cwd, output, errors)
        return self.wait()

    def start(self, words: Sequence[str], cwd: Path, output: Path, errors: Path | None = None) -> int:
        """Starts a command in a session of its own; returns its process. `wait` has its status."""
        assert self.process.stdin is not None
        assert self.free.acquire(blocking=False), "it runs one command at a time"
        self.process.stdin.write(json.dumps([list(words), str(cwd), str(output), str(errors or output)]) + "\n")
        self.process.stdin.flush()
        return int(self.answers.get())

    def wait(self, seconds: float | None = None) -> int:
        """The exit status of the command that was started; `queue.Empty` if it goes on for more seconds."""
        status = int(self.answers.get(timeout=seconds))
        self.free.release()
        return status


def import_all() -> None:
    """Imports what the commands need, before the process forks."""
    for module in IMPORTED:
        __import__(module)
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    # Hydra reads its grammar, and the sources of the functions that call it, when it is used first.
    flags = ["data", "--task", "language_modeling", "--arch", "transformer_lm"]
    convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), flags))


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print when they are imported is no answer
    import_all()
    for line in sys.stdin:
        words, *places = json.loads(line)
        child = os.fork()
        if child == 0:
            become(words, *places)
        print(child, file=answers, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


def become(words: list[str], cwd: str, output: str, errors: str) -> None:
    """Run the command in a session of its own and leave the process."""
    os.setsid()
    os.chdir(cwd)
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
    with open(errors, "ab") as file:  # after what is in the file of both
        os.dup2(1 if errors == output else file.fileno(), 2)
    run_module(words)


def run_module(words: list[str]) -> NoReturn:
    """Runs a module as `python -m` does and leaves the process."""
    status: object = 0
    sys.argv = list(words)
    warnings.filterwarnings("ignore", ".* found in sys.modules after import", RuntimeWarning)  # so it is
    os.execv = go_on
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code or 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        status = 1
    if not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def go_on(path: str, words: Sequence[str]) -> NoReturn:
    """Runs a Python program, `python -P FILE ...` or `python -P -m MODULE ...`, in place of the process of its own."""
    assert path == sys.executable and words[1] == "-P", words
    sys.stdout.flush()
    forget_logs()
    sys.argv = list(words[3:] if words[2] == "-m" else words[2:])
    if words[2] == "-m":
        runpy.run_module(words[3], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[2], run_name="__main__")
    raise SystemExit(0)


def forget_logs() -> None:
    """Makes logs those of a new process; fairseq_cli.train sets them up when it is imported."""
    sys.modules.pop("fairseq_cli.train", None)
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)


if __name__ == "__main__":
    serve()
