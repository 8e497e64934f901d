"""A short log of a training, with the time that is left.

fairseq logs every setting in one line, the modules of the model, and how it makes batches, before the first update.
`LOGLEVEL=DEBUG` shows them. Warnings and errors stay, but those of `WARNINGS`, which no user of fairseq can act on.
"""

import logging
import math
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from fairseq.logging import progress_bar
from fairseq.logging.progress_bar import BaseProgressBar
from omegaconf import DictConfig
from torch import nn

from .replace import replaces

#: Where fairseq and Hydra use what a library calls old, and pinned memory, which fairseq asks for on a CPU, too.
WARNINGS = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\n'config' is validated against ConfigStore schema with the same name",
    r"\nThe strict flag in the compose API is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.autocast\(args\.\.\.\)` is deprecated",
)
#: How lines begin that tell nothing of this training, by logger.
HIDDEN = {
    "fairseq_cli.train": r"num\. expert model params: 0 ",
    "fairseq.tasks.fairseq_task": r"can_reuse_epoch_itr|reuse_dataloader|rebuild_batches|batches will be|creating new",
    "fairseq.data.data_utils": r"loaded .*\.(source-target|role-None)\.",  # the task says how many there are
    "fairseq.data.iterators": "grouped total_num_itrs",
    "fairseq.trainer": "detected shared parameter",
}


def make_quiet() -> None:
    """Hides the warnings above and, unless `LOGLEVEL` is DEBUG, the lines; fairseq resets the levels of loggers."""
    for message in WARNINGS:
        warnings.filterwarnings("ignore", message)
    for name in HIDDEN if os.environ.get("LOGLEVEL", "").upper() != "DEBUG" else ():
        logging.getLogger(name).addFilter(is_shown)


def is_shown(record: logging.LogRecord) -> bool:
    """Whether a record is shown; that of all settings becomes the command."""
    if record.levelno > logging.INFO:
        return True
    if isinstance(record.msg, DictConfig):
        record.msg = f"settings: {shlex.join(sys.argv[1:])}"
    return not (isinstance(record.msg, nn.Module) or re.match(HIDDEN[record.name], str(record.msg)))


class _TimeLeft(BaseProgressBar):
    """A progress bar of an epoch that adds `minutes_left` to the figures of a training."""

    updates, begin = 0, 0.0  # that this process has begun, and when the first

    def __init__(self, bar: Any, iterator: Any, epoch: int) -> None:
        self.bar, self.size, self.done, self.epoch = bar, len(iterator), getattr(iterator, "n", 0), epoch
        self.max_update = self.max_epoch = math.inf

    def __iter__(self) -> Iterator[Any]:
        for samples in self.bar:
            _TimeLeft.begin = _TimeLeft.begin or time.monotonic()
            _TimeLeft.updates, self.done = _TimeLeft.updates + 1, self.done + 1
            yield samples

    def log(self, stats: Any, tag: str | None = None, step: int | None = None) -> None:
        self.bar.log(self._with_minutes_left(stats, step), tag=tag, step=step)

    def print(self, stats: Any, tag: str | None = None, step: int | None = None) -> None:
        self.bar.print(self._with_minutes_left(stats, step), tag=tag, step=step)

    def update_config(self, config: Any) -> None:
        """Tells how long the training is; fairseq calls it for no other bar."""
        optimization = config["optimization"]
        self.max_update, self.max_epoch = (optimization[n] or math.inf for n in ("max_update", "max_epoch"))
        self.bar.update_config(config)

    def _with_minutes_left(self, stats: Any, step: int | None) -> Any:
        left = min(self.max_update - (step or 0), (self.max_epoch - self.epoch + 1) * self.size - self.done)
        if not (self.updates and math.isfinite(left)):
            return stats
        seconds = (time.monotonic() - self.begin) / self.updates * max(left, 0)
        return {**stats, "minutes_left": round(seconds / 60, 1)}


@replaces(progress_bar, "progress_bar")
def with_time_left(original: Callable[..., Any], iterator: Any, *args: Any, **kwargs: Any) -> Any:
    """A progress bar with the time that is left, of an epoch."""
    bar, epoch = original(iterator, *args, **kwargs), kwargs.get("epoch")
    return bar if epoch is None else _TimeLeft(bar, iterator, epoch)
