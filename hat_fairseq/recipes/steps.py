"""Runs the commands of `hat recipe run`, each in a process of its own that need not import torch and fairseq again.

This process imports them once, in some ten seconds, and forks for each command. Nothing may be computed before a fork,
because threads do not survive it. Where there is a GPU a command is a new process, because a driver does not either.
"""

import atexit
import importlib
import logging
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from .. import cli, fairseq_commands

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
GPU = Path("/dev/nvidiactl"), Path("/dev/kfd")


def run_to_the_end(command: Sequence[str], quiet: bool = False) -> int:
    """Runs a command and returns its status. It gets Ctrl-C itself and may save a checkpoint; SIGTERM is passed on.

    `quiet`: what it prints goes to the standard error.
    """
    process: Any
    if forks() and [*command[: len(PYTHON) + 1]] == [*PYTHON, CLI]:
        process = Fork(command[len(PYTHON) + 1 :], quiet)
    else:
        process = subprocess.Popen(command, stdout=sys.stderr if quiet else None)
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
    """Returns whether commands are forks of this process: on Linux, because macOS ends forks that use its libraries."""
    return sys.platform == "linux" and not any(path.exists() for path in GPU)


class Fork:
    """A process for a verb of `hat`, with those methods of `subprocess.Popen` that its caller needs."""

    def __init__(self, words: Sequence[str], quiet: bool) -> None:
        for name in IMPORTED:
            with suppress(ImportError):  # the command says what is missing
                importlib.import_module(name)
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if self.process == 0:
            become(words, quiet)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])

    def terminate(self) -> None:
        os.kill(self.process, signal.SIGTERM)


def become(words: Sequence[str], quiet: bool) -> NoReturn:
    """Runs a verb of `hat` as a new process would, and ends the process."""
    status: Any = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):  # one that nohup ignores stays so
                signal.signal(number, signal.SIG_DFL)
        if quiet:
            os.dup2(sys.__stderr__.fileno(), sys.__stdout__.fileno())  # type: ignore[union-attr]
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
            del sys.path[0]
        logging.root.handlers.clear()
        status = train(words[1:]) if words[0] == "train" else verb(words)
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
