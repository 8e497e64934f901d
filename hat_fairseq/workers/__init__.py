"""`Workers` map a function over a stream: in this process, in processes of this machine, or on a Ray cluster.

Results come in the order of the items and do not depend on where they are computed. A worker has one item at a time.
On a cluster an item whose worker dies goes to another one.
"""

import argparse
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self, TypeVar

from tqdm import tqdm

from .processes import Processes, Reply, visible_gpus

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_WORKERS = 1024  # a number with a digit too many would fill the memory with processes
EVERY = 60.0  # seconds between two lines of `progress` where there is no terminal

__all__ = ["Workers", "add_workers", "progress"]


def add_workers(parser: argparse._ActionsContainer, default: str) -> None:
    """Declares how many workers there are, and where; `default` describes their number without a cluster."""
    text = f"the number of processes, which does not change the result (default: {default}; on a cluster one for "
    text += "each GPU or CPU)"
    parser.add_argument("--workers", type=int, metavar="N", help=text)
    text = "run on the Ray cluster with this address; `auto`: the running one, `local`: a new one on this machine "
    text += "(docs/training.md#preprocessing-generation-prediction)"
    parser.add_argument("--cluster", metavar="ADDRESS", help=text)


@dataclass
class Workers:
    """Where `map` computes. A `with` block ends the connection to the cluster.

    Attributes:
        count: number of workers; None: one for each GPU or CPU of the cluster, without a cluster one.
        cluster: address of a Ray cluster, `auto`, or `local` for one that this process starts; None: this machine.
        with_models: each worker has a fresh process, because torch's threads do not survive a fork.
        on_gpus: each worker has a GPU of its own, if there are any.
        apart: also a single worker is a process, which ends where memory does not suffice, and can be stopped.
    """

    count: int | None = None
    cluster: str | None = None
    with_models: bool = False
    on_gpus: bool = False
    apart: bool = False
    _actors: Any = None  # of the cluster

    def __post_init__(self) -> None:
        if self.count is not None and not 1 <= self.count <= MAX_WORKERS:
            raise ValueError(f"--workers {self.count}: the number of workers must be from 1 to {MAX_WORKERS:,}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        if self._actors is not None:
            self._actors.ray.shutdown()  # ends all actors, and a cluster that this process has started

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Maps like the built-in `map`; an exception in a worker is raised here.

        Only a few items for each worker are read ahead, so the stream may be longer than memory. The `name` of an item
        is for messages.

        Raises:
            ChildProcessError: a worker of this machine died, or an item has ended three workers of a cluster.
            ValueError: no cluster at this address, or a machine of it has other versions.
        """
        pool: Any
        if self.cluster is None:
            gpus = visible_gpus() if self.on_gpus else []
            count = self.count or len(gpus) or 1
            if count == 1 and not self.apart:
                yield from map(function, items)
                return
            pool = Processes(count, gpus, self.with_models)
        else:
            from .cluster import Actors

            pool = self._actors = self._actors or Actors(self.count, self.cluster, self.on_gpus)
        try:
            pool.start(function)
            yield from _results(pool, iter(items))
        finally:
            pool.stop()


def _results(pool: Any, items: Iterator[Any]) -> Iterator[Any]:
    """The results of a pool, in order.

    A pool has `idle` workers, and `ready()`, which waits until busy ones have answered. A worker has `send`, and
    `receive`, which is a ChildProcessError if it has died.
    """
    waiting: deque[tuple[int, Any]] = deque()
    busy: dict[Any, tuple[int, Any]] = {}
    finished: dict[int, Reply] = {}
    deaths: Counter[int] = Counter()
    read = wanted = 0  # numbers of items
    while True:
        while len(waiting) < max(1, len(pool.idle)) and read - wanted <= 4 * pool.size and (new := [*islice(items, 1)]):
            waiting.append((read, new[0]))
            read += 1
        if wanted == read:
            return
        while pool.idle and waiting:
            number, item = waiting.popleft()
            worker = pool.idle.pop()
            busy[worker] = number, item
            worker.send(item)
        for worker in pool.ready(list(busy)):
            number, item = busy.pop(worker)
            try:
                finished[number] = worker.receive()
                pool.idle.append(worker)
            except ChildProcessError as error:
                deaths[number] += 1
                if deaths[number] == pool.max_deaths:
                    name = getattr(item, "name", f"item {number + 1}")
                    raise ChildProcessError(pool.last_death.format(name=name, error=error)) from None
                waiting.appendleft((number, item))
                pool.replace()
        while wanted in finished:
            good, value = finished.pop(wanted)
            if not good:
                raise value
            yield value
            wanted += 1


def progress(
    items: Iterable[Item], what: str, total: int | None = None, unit: str = "documents", every: float | None = None
) -> Iterator[Item]:
    """Yields the items, while stderr says how many there were, and with a total how long the rest will take.

    Where stderr is no terminal, it is one line `every` so many seconds (default: `EVERY`), with the name of the step.
    """
    if sys.stderr.isatty():
        # A terminal that states no width, such as that of `script` or of a container, would get an empty bar.
        width = None if os.get_terminal_size(sys.stderr.fileno()).columns else 80
        yield from tqdm(items, desc=what, total=total, unit=f" {unit}", leave=False, ncols=width)
        return
    begin = last = time.monotonic()
    for number, item in enumerate(items, start=1):
        yield item
        if (now := time.monotonic()) - last >= (EVERY if every is None else every):
            last, minutes = now, (now - begin) / 60
            of, rest = (
                (f" of {total:,}", f", about {minutes / number * (total - number):.0f} min left") if total else ("", "")
            )
            print(f"{what}: {number:,}{of} {unit} in {minutes:.0f} min{rest}", file=sys.stderr, flush=True)
