"""Writes the figures of a training to `history.jsonl` in its `--save-dir`; `hat look --training` draws them.

One JSON object for each time that fairseq logs: `part` ("train_inner", "train" or the name of a validation split),
`update`, and the figures.
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairseq.logging import progress_bar
from fairseq.logging.progress_bar import BaseProgressBar, format_stat

from ..data.outputs import HISTORY
from .replace import replaces
from .save_dir import folder_of_training


class _History(BaseProgressBar):
    """A progress bar that also writes what it is told."""

    def __init__(self, bar: Any, path: Path) -> None:
        self.bar, self.path = bar, path

    def __iter__(self) -> Iterator[Any]:
        return iter(self.bar)

    def log(self, stats: Any, tag: str | None = None, step: int | None = None) -> None:
        self._write(stats, tag, step)
        self.bar.log(stats, tag=tag, step=step)

    def print(self, stats: Any, tag: str | None = None, step: int | None = None) -> None:
        self._write(stats, tag, step)
        self.bar.print(stats, tag=tag, step=step)

    def update_config(self, config: Any) -> None:
        self.bar.update_config(config)

    def _write(self, stats: Any, tag: str | None, step: int | None) -> None:
        if tag is None or step is None:
            return
        figures = {name: number for name, value in stats.items() if (number := _number(value)) is not None}
        line = json.dumps({"part": tag, "update": int(step), **figures}) + "\n"
        with self.path.open("ab+") as file:
            file.seek(max(file.tell() - 1, 0))
            if file.read(1) not in (b"", b"\n"):  # the process was killed while it wrote a line
                file.write(b"\n")
            file.write(line.encode())


def _number(value: Any) -> float | None:
    try:
        number = float(format_stat(value))
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@replaces(progress_bar, "progress_bar")
def make_progress_bar(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A progress bar that writes the history, in the process that writes the checkpoints of a training."""
    bar, folder = original(*args, **kwargs), folder_of_training()
    return bar if folder is None else _History(bar, folder / HISTORY)
