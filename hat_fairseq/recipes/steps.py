"""Runs the commands of `hat recipe run`, each in a process of its own that need not import torch and fairseq again.

This process imports them once, in some ten seconds, and forks for each command. Nothing may be computed before a fork,
because threads do not survive it. Where there is a GPU a command is a new process, because a driver does not either.
"""

import atexit
import importlib
import importlib.util
import logging
import os
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TextIO

from .. import cli, fairseq_commands, workers
from ..progress import Bar

#: -P: the current directory is no place to import from.
PYTHON = (sys.executable, "-P", "-m")
CLI = "hat_fairseq.cli"
#: What most commands of a recipe import; the last ones a training imports when it reads its settings, or fits words.
IMPORTED: tuple[str, ...] = "fairseq", "hat_fairseq.register", "hat_fairseq.inference.predict"
IMPORTED += (
    "hat_fairseq.weights.export",
    "hydra.experimental.compose",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "scipy.sparse",
)
LAST_LINES = 15  # of the output of a command that fails
GPU = Path("/dev/nvidiactl"), Path("/dev/kfd")


def run_step(title: str, command: Sequence[str], log: Path, out: TextIO | None = None) -> int:
    """Runs a command whose output goes to the end of a log, and returns its status.

    A line of `out` shows how far it is. If it fails, the end of what it printed is shown; else its warnings are.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    bar = Bar(title, command, log, out)
    with log.open("a", encoding="utf-8", errors="replace") as file:
        print(f"$ {shlex.join(command)}", file=file, flush=True)
        status = run_to_the_end(command, file, bar)
    lines = bar.text.decode(errors="replace").splitlines()[1:]
    bar.end("failed" if status else "")
    if status:
        print(*lines[-LAST_LINES:], f"status {status}; all that it printed is in {log}", sep="\n", file=sys.stderr)
    for line in () if status else lines:
        if line.startswith("warning"):
            print(f"  {line}", file=bar.out)
    return status


def run_to_the_end(command: Sequence[str], output: TextIO, bar: Bar) -> int:
    """Runs a command and returns its status. It gets Ctrl-C itself and may save a checkpoint; SIGTERM is passed on."""
    process: Any
    if forks() and [*command[: len(PYTHON)]] == [*PYTHON]:
        with bar:
            import_packages()  # threads of the bar have ended when it forks
        process = Fork(command[len(PYTHON) :], output)
    else:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        with bar:
            while True:
                try:
                    return int(process.wait())
                except KeyboardInterrupt:
                    continue
    except SystemExit:
        process.terminate()
        process.wait()
        raise


def forks() -> bool:
    """Returns whether commands are forks of this process: on Linux, because macOS ends forks that use its libraries.

    Without fairseq they are not, because half of the imports would fail and leave the rest behind.
    """
    has_fairseq = importlib.util.find_spec("fairseq") is not None
    return sys.platform == "linux" and has_fairseq and not any(path.exists() for path in GPU)


class Fork:
    """A process for a module and its arguments, with those methods of `subprocess.Popen` that its caller needs."""

    def __init__(self, words: Sequence[str], output: TextIO) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            become(words, output)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def terminate(self) -> None:
        os.kill(self.process, signal.SIGTERM)


def import_packages() -> None:
    """Imports what most commands need, as far as it is installed."""
    for name in IMPORTED:
        with suppress(ImportError):  # the command says what is missing
            importlib.import_module(name)


def become(words: Sequence[str], output: TextIO) -> NoReturn:
    """Runs a module as a new process would, prints to a file, and ends the process."""
    status: Any = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):  # one that nohup ignores stays so
                signal.signal(number, signal.SIG_DFL)
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        workers.EVERY = 1.0
        if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
            del sys.path[0]
        logging.root.handlers.clear()
        module, *arguments = words
        if module == CLI:
            status = train(arguments[1:]) if arguments[0] == "train" else verb(arguments)
        else:
            if module.startswith("fairseq_cli."):
                importlib.import_module("hat_fairseq.register").register()
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
            status = 0
    except SystemExit as error:
        status = error.code or 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    with suppress(BaseException):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


def verb(words: Sequence[str]) -> int:
    """Runs `hat` with these words."""
    sys.argv = [cli.__file__, *words]
    return cli.main(words)


def train(flags: Sequence[str]) -> int:
    """Runs `hat train`, which becomes the program of fairseq, with these flags."""
    try:
        fairseq_commands.check(flags)
    except ValueError as error:
        print(f"hat: error: {cli.describe(error)}", file=sys.stderr)
        return cli.EXIT_ERROR
    importlib.import_module("hat_fairseq.register").register()
    sys.argv = [fairseq_commands.__file__, *flags]
    runpy.run_path(fairseq_commands.__file__, run_name="__main__")
    return 0
