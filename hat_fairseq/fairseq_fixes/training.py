"""An update of a training: the batches in it, the message if it diverges, and its line in the log.

In fairseq the log begins with all settings in one line, the modules of the model, and how batches are made. Here it has
the command; `LOGLEVEL=DEBUG` shows the rest. Warnings and errors stay, but those of `WARNINGS`.
"""

import logging
import math
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.logging import metrics, progress_bar
from omegaconf import DictConfig
from torch import nn

from .restoring import newest_first

SHOWN_IDS = 50
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


def train_step(original: Callable[..., Any], self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
    """An update without the empty batches that fill up the last update of an epoch, unless there is no other batch.

    In fairseq a process whose last batch of an update is empty drops the gradients of its earlier ones. If one of
    several processes runs out of memory, the run ends; in fairseq the others would wait, or count its samples.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update,
            the samples and the last finite checkpoint. The log above names the first module.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    first = vars(self).setdefault("first_update", (self.get_num_updates(), time.monotonic()))
    try:
        logged = original(self, samples, raise_oom or self.data_parallel_world_size > 1)
    except Exception as error:
        cause = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(cause, FloatingPointError):
            raise
        ids = [str(int(number)) for sample in samples if sample and "id" in sample for number in sample["id"]]
        more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
        raise FloatingPointError(
            f"update {self.get_num_updates() + 1}: {cause}; sample ids {', '.join(ids[:SHOWN_IDS])}{more}; the last "
            f"checkpoint with finite weights: {last_finite(Path(self.cfg.checkpoint.save_dir)) or 'none'}. Try a lower "
            "--lr, more --warmup-updates or --clip-norm 1"
        ) from None
    if hasattr(self, "epoch_iterator"):
        log_minutes_left(self, *first)
    return logged


def last_finite(save_dir: Path) -> Path | None:
    """The newest checkpoint in a `--save-dir` whose weights are all finite."""
    for _, path in newest_first(save_dir):
        weights = torch.load(path, map_location="cpu", weights_only=True)["model"]
        if all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            return path
    return None


def add_hooks(original: Callable[..., Any], self: Any, module: nn.Module) -> None:
    """Has fairseq's `NanDetector` watch outputs of every module, and gradients of modules without children.

    In fairseq the hooks of gradients fail at modules that return no tensors, such as encoders, and hide the cause.
    """
    backward, self.backward = self.backward, self.backward and not list(module.children())
    original(self, module)
    self.backward = backward


def log_minutes_left(trainer: Any, first: int, begin: float) -> None:
    """Logs the minutes until `--max-update` or `--max-epoch`, at the mean speed since update `first`."""
    settings, iterator, updates = trainer.cfg.optimization, trainer.epoch_iterator, trainer.get_num_updates()
    frequency = settings.update_freq[min(iterator.epoch, len(settings.update_freq)) - 1]
    batches = (settings.max_epoch - iterator.epoch + 1) * len(iterator) - iterator.iterations_in_epoch
    left = [settings.max_update - updates] * (settings.max_update > 0)
    left += [math.ceil(batches / frequency)] * (settings.max_epoch > 0)
    if left and updates > first:
        minutes = (time.monotonic() - begin) / (updates - first) * max(min(left), 0) / 60
        metrics.log_scalar("minutes_left", minutes, weight=0, priority=2000, round=1)  # weight 0: the last value


def make_progress_bar(original: Callable[..., Any], *args: Any, log_file: str | None = None, **kwargs: Any) -> Any:
    """Opens `--log-file` once; in fairseq each epoch opens it again, and a line is written as often."""
    is_open = any(isinstance(handler, logging.FileHandler) for handler in progress_bar.logger.handlers)
    return original(*args, log_file=None if is_open else log_file, **kwargs)


def shorten_log() -> None:
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
