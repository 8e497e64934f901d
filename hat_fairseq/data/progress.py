"""Progress of long steps: a bar on a terminal, else a line a minute."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def progress(
    items: Iterable[Item], what: str, total: int | None = None, unit: str = "documents", every: float = 60.0
) -> Iterator[Item]:
    """The items, while stderr says how many there were, and with a total how long the rest will take.

    Args:
        what: name of the step.
        every: seconds between two lines where stderr is no terminal.
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
            of, rest = (f" of {total:,}", f", about {left:.0f} minutes left") if total else ("", "")
            print(
                f"{what}: {number:,}{of} {unit} in {(now - begin) / 60:.0f} minutes{rest}", file=sys.stderr, flush=True
            )
