"""Workers in processes of this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import Any

Reply = tuple[bool, Any]  # (True, result) or (False, exception)

SECONDS_TO_END = 5
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def visible_gpus() -> list[str]:
    """Returns the GPUs that this process sees, as names for CUDA_VISIBLE_DEVICES."""
    import torch

    names = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    count = torch.cuda.device_count()
    return (names or [str(number) for number in range(count)])[:count]


def answer(function: Callable[[Any], Any], item: Any) -> Reply:
    """Calls a function as a worker does."""
    try:
        return True, function(item)
    except Exception as error:
        return False, error


class Processes:
    """Processes of this machine. Each has a pipe of its own; no lock is shared, so a death is always noticed."""

    max_deaths = 1  # memory is short, or somebody has ended it
    last_death = "{name}: {error}"

    def __init__(self, size: int, gpus: Sequence[str], fresh: bool) -> None:
        self.size, self.gpus, self.fresh = size, gpus, fresh
        self.idle: list[Process] = []
        self.all: list[Process] = []

    def start(self, function: Callable[[Any], Any]) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it warns of forks beside its own threads
        threads = str(max(1, (os.cpu_count() or 1) // self.size))
        with deferred_signals():
            for number in range(self.size):
                environment = {"CUDA_VISIBLE_DEVICES": self.gpus[number % len(self.gpus)]} if self.gpus else {}
                if self.fresh and "OMP_NUM_THREADS" not in os.environ:
                    environment["OMP_NUM_THREADS"] = threads
                self.all.append(Process(function, environment, self.fresh))
        self.idle = list(self.all)

    def ready(self, busy: list["Process"]) -> list["Process"]:
        answered = wait([worker.pipe for worker in busy])
        return [worker for worker in busy if worker.pipe in answered]

    def stop(self) -> None:
        for worker in self.idle:
            worker.end()
        for worker in self.all:
            worker.process.join(SECONDS_TO_END if worker in self.idle else 0)
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()


class Process:
    def __init__(self, function: Callable[[Any], Any], environment: dict[str, str], fresh: bool) -> None:
        self.pipe, other_end = multiprocessing.Pipe()
        context: Any = multiprocessing.get_context("spawn" if fresh else None)
        arguments = other_end, environment, None if fresh else function
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        other_end.close()
        if fresh:  # after its environment, which torch reads when the function is imported
            with suppress(OSError):
                self.pipe.send(function)

    def send(self, item: Any) -> None:
        with suppress(OSError):  # `receive` says how it has died
            self.pipe.send((item,))

    def end(self) -> None:
        with suppress(OSError):
            self.pipe.send(None)

    def receive(self) -> Reply:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
            raise ChildProcessError(f"a worker process {how}; if memory ran out, use fewer --workers") from None


def _work(pipe: Any, environment: dict[str, str], function: Callable[[Any], Any] | None) -> None:
    for each in ENDING:
        if callable(signal.getsignal(each)):  # that of `deferred_signals`
            signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    # Locks of libraries then have no name, which a killed worker would leave; a worker has no processes of its own.
    multiprocessing.set_start_method("fork", force=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(environment)
    task = function or pipe.recv()
    while (message := pipe.recv()) is not None:
        pipe.send(answer(task, *message))


def _end_with_parent() -> None:
    """Ends a worker when its parent process is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Signals that Python handles wait for the end of the block, in which processes are started, or Ray is called.

    Both drop the exception that a signal raises there, and the run would go on.
    """
    arrived: list[int] = []
    handlers = {each: signal.getsignal(each) for each in ENDING if callable(signal.getsignal(each))}
    handlers = handlers if threading.current_thread() is threading.main_thread() else {}
    for each in handlers:
        signal.signal(each, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)
        for number in arrived:
            signal.raise_signal(number)
