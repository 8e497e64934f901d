"""A progress display."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress(
    items: Iterable[Item], what: str, total: int | None = None, unit: str = "documents", every: float = 60.0
) -> Iterator[Item]:
    """Yields the items, while stderr says how many there were, and with a total how long the rest will take.

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
