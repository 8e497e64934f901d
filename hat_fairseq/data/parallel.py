"""Apply a function to a stream of items in several processes, results in the order of the items."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from multiprocessing import parent_process
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_BATCH = 16  # items sent at once: enough to hide the cost of sending, few enough for a steady progress bar
_function: Callable[[Any], Any]


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Like ``map``, with ``workers`` processes if there are at least two; an exception in one of them is raised here.

    Only a few batches for each worker are read ahead, so the stream may be longer than memory.

    Raises:
        ValueError: fewer than one worker.
    """
    if workers < 1:
        raise ValueError(f"the number of workers must be at least 1, not {workers}")
    if workers == 1:
        yield from map(function, items)
        return
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # we have our own; tokenizers warns of the two together
    waiting: deque[Future[list[Result]]] = deque()
    remaining = iter(items)
    with ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(function,)) as pool:
        try:
            while batch := list(islice(remaining, _BATCH)):
                waiting.append(pool.submit(_run, batch))
                if len(waiting) > 4 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _start_worker(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends a worker when its parent process is killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(batch: list[Any]) -> list[Any]:
    return [_function(item) for item in batch]
