"""`ordered_map`: applies a function to a stream of items in several processes; and a progress display.

Every worker has a pipe of its own and one item at a time. No lock is shared, so that a killed worker is always
noticed.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_WORKERS = 1024  # a number with a digit too many would fill the memory with processes
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Like `map`, with `workers` processes if there are at least two; an exception in one of them is raised here.

    Only a few items for each worker are read ahead, so the stream may be longer than memory. ValueError for fewer
    than one worker or more than `MAX_WORKERS`; ChildProcessError for a worker that was killed.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise ValueError(f"--workers {workers}: the number of workers must be from 1 to {MAX_WORKERS:,}")
    if workers == 1:
        yield from map(function, items)
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # we have our own; tokenizers warns of the two together
    pool: list[_Worker] = []
    try:
        with deferred_signals():
            pool += (_Worker(function) for _ in range(workers))
        yield from _results(pool, iter(items))
    finally:
        for worker in pool:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Signals that Python handles wait for the end of the block, in which processes are started.

    Python ignores an exception in what it runs around a fork: a signal that should end the run would be lost.
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


class _Worker:
    """A process that answers each item with (True, result) or (False, exception)."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=_work, args=(theirs, function), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, item: Any) -> None:
        try:
            self.pipe.send(item)
        except OSError:
            self._refuse()

    def receive(self) -> tuple[bool, Any]:
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            return self._refuse()

    def _refuse(self) -> NoReturn:
        self.process.join()
        code = self.process.exitcode or 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit status {code}"
        raise ChildProcessError(f"a worker process {how}; if memory ran out, use fewer --workers") from None


def _results(pool: list[_Worker], remaining: Iterator[Any]) -> Iterator[Any]:
    idle, busy = list(pool), dict[Any, tuple[_Worker, int]]()
    finished: dict[int, tuple[bool, Any]] = {}
    read = wanted = 0  # numbers of items
    while True:
        while idle and read - wanted <= 4 * len(pool) and (items := list(islice(remaining, 1))):
            worker = idle.pop()
            busy[worker.pipe] = worker, read
            worker.send(items[0])
            read += 1
        if not busy:
            return
        for pipe in wait(list(busy)):
            worker, number = busy.pop(pipe)
            finished[number] = worker.receive()
            idle.append(worker)
        while wanted in finished:
            good, value = finished.pop(wanted)
            if not good:
                raise value
            yield value
            wanted += 1


def _work(pipe: Connection, function: Callable[[Any], Any]) -> None:
    for each in ENDING:
        if callable(signal.getsignal(each)):  # that of `deferred_signals`
            signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        item = pipe.recv()
        try:
            answer: tuple[bool, Any] = True, function(item)
        except Exception as error:
            answer = False, error
        pipe.send(answer)


def _end_with_parent() -> None:
    """Ends a worker when its parent process is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def progress(
    items: Iterable[Item], what: str, total: int | None = None, unit: str = "documents", every: float = 60.0
) -> Iterator[Item]:
    """The items, while stderr says how many there were, and with a total how long the rest will take.

    Where stderr is no terminal, it is one line `every` so many seconds, with the name of the step, `what`.
    """
    if sys.stderr.isatty():
        yield from tqdm(items, desc=what, total=total, unit=f" {unit}", leave=False)
        return
    begin = last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if (now := time.monotonic()) - last >= every:
            last = now
            left = (now - begin) / number * (total - number) / 60 if total else 0
            of, rest = (f" of {total:,}", f", about {left:.0f} min left") if total else ("", "")
            line = f"{what}: {number:,}{of} {unit} in {(now - begin) / 60:.0f} min{rest}"
            print(line, file=sys.stderr, flush=True)
