"""Commands without the seconds that importing torch and fairseq takes: one process imports them and forks for each.

A command is what follows `python -m`: the module, run as `__main__` by the forked process, and its arguments. Where the
command becomes another Python program (`os.execv`), as `hat train` does, the forked process goes on with that program.
`WarmPython.programs` gives commands of the same names to shells, notebooks and torchrun.
"""

from __future__ import annotations

import atexit
import json
import logging
import multiprocessing
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import warm_client
from commands import HEEDING, REPOSITORY, environment

COMMANDS = ("train", "generate", "preprocess", "validate", "interactive")
MODULES = {f"fairseq-{name}": f"fairseq_cli.{name}" for name in COMMANDS} | {"hat": "hat_fairseq.cli"}  # of programs
IMPORTED = ("fairseq_cli.train", "hat_fairseq.inference.predict", "hat_fairseq.data.preprocess")
PROGRAMS = MODULES | {"torchrun": "torch.distributed.run", "train-in-forks": "train_in_forks"}
PROGRAMS |= {"train-and-show": "train_and_show"}
# What a training imports when it makes its optimizer and reads its settings: half a second each.
IMPORTED += ("torch.distributed.run", "torch._dynamo", "torch.distributed.fsdp", "hydra.experimental.compose")
FORKS = "HAT_TESTS_FORK"  # with this variable the workers of a command are forks, too
PROGRAM = """#!{python} -SE
import sys
sys.path.insert(0, {support!r})
import warm_client
warm_client.main({path!r}, {module!r})
"""


class WarmPython:
    """The process that has imported everything; use it in a `with` statement."""

    def __enter__(self) -> WarmPython:
        self.closing = ExitStack()
        self.folder = Path(self.closing.enter_context(tempfile.TemporaryDirectory()))
        words, pipes = [*HEEDING, sys.executable, __file__, self._path], {"stdin": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), cwd=REPOSITORY, **pipes)  # type: ignore[call-overload]
        self.answers: socket.socket | None = None
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()  # the end of its input is the end of its commands
        self.closing.close()

    @property
    def _path(self) -> str:
        return str(self.folder / "socket")

    @cached_property
    def socket(self) -> str:
        """The path of the socket, as soon as everything is imported."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        return self._path

    @cached_property
    def programs(self) -> str:
        """A PATH with the commands of fairseq and of this package; those in front need no imports."""
        folder = self.folder / "programs"
        folder.mkdir()
        support = str(Path(__file__).parent)
        for name, module in PROGRAMS.items():
            program = folder / name
            program.write_text(PROGRAM.format(python=sys.executable, support=support, path=self.socket, module=module))
            program.chmod(0o755)
        return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])

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
        assert self.answers is None, "it runs one command at a time"
        with open(os.devnull) as nothing, output.open("wb") as out, (errors or output).open("ab") as err:
            files = [nothing.fileno(), out.fileno(), err.fileno() if errors else out.fileno()]
            self.answers, process = warm_client.start(self.socket, words, str(cwd), environment(), files)
        return process

    def wait(self, seconds: float | None = None) -> int:
        """The exit status of the command that was started; TimeoutError if it goes on for more seconds."""
        assert self.answers is not None
        if not select.select([self.answers], [], [], seconds)[0]:
            raise TimeoutError(f"the command goes on for more than {seconds} seconds")
        answers, self.answers = self.answers, None
        return warm_client.status(answers)


def import_all() -> None:
    """Imports what the commands need, before the process forks."""
    for module in IMPORTED:
        __import__(module)
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    # Hydra reads its grammar, and the sources of the functions that call it, when it is used first.
    flags = ["data", "--task", "language_modeling", "--arch", "transformer_lm"]
    convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), flags))


class Server:
    """Starts a command for each client, and kills it when its client has ended."""

    def __init__(self, path: str) -> None:
        self.events = selectors.DefaultSelector()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        self.events.register(self.socket, selectors.EVENT_READ, self.accept)
        self.events.register(sys.stdin, selectors.EVENT_READ, self.end)
        self.ends = False
        self.running: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Runs until the standard input ends."""
        while not self.ends:
            for key, _ in self.events.select():
                key.data()

    def end(self) -> None:
        self.ends = True
        for process in self.running:
            os.kill(process, signal.SIGKILL)

    def accept(self) -> None:
        client, _ = self.socket.accept()
        head, files, *_ = socket.recv_fds(client, 4, 3)
        with client.makefile("rb") as stream:
            words, folder, variables = json.loads(stream.read(int.from_bytes(head, "big")))
        process = os.fork()
        if process == 0:
            self.events.close()
            self.socket.close()
            for other in (client, *self.running.values()):
                other.close()
            become(words, folder, variables, files)
        for file in files:
            os.close(file)
        self.running[process] = client
        ended = os.pidfd_open(process)
        self.events.register(ended, selectors.EVENT_READ, lambda: self.answer(process, ended))
        self.events.register(client, selectors.EVENT_READ, lambda: self.kill(process))
        client.sendall(f"{process}\n".encode())

    def kill(self, process: int) -> None:
        self.events.unregister(self.running[process])
        os.kill(process, signal.SIGKILL)

    def answer(self, process: int, ended: int) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with self.running.pop(process) as client:
            with suppress(KeyError):
                self.events.unregister(client)
            with suppress(OSError):  # it has ended
                client.sendall(f"{status}\n".encode())
        self.events.unregister(ended)
        os.close(ended)


def become(words: list[str], folder: str, variables: dict[str, str], files: list[int]) -> NoReturn:
    """Run the command in a session of its own and leave the process."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    if FORKS in variables:
        get_context = multiprocessing.get_context
        multiprocessing.get_context = lambda method=None: get_context("fork" if method == "spawn" else method)  # type: ignore[assignment, misc]
    run_module(words)


def run_module(words: list[str]) -> NoReturn:
    """Runs a module as `python -m` does and leaves the process."""
    status: object = 0
    forget_logs()
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
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def go_on(path: str, words: Sequence[str]) -> NoReturn:
    """Runs a Python program, `python -P FILE ...` or `python -P -m MODULE ...`, in place of the process of its own."""
    assert path == sys.executable, words
    assert words[1] == "-P", words
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
    ready = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print when they are imported is no answer
    import_all()
    server = Server(sys.argv[1])
    print("ready", file=ready, flush=True)
    server.serve()
