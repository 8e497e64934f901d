"""A training: its data are checked, its log is short and says how long the rest takes, its updates count all samples.

Data: damaged files are refused, numpy 2 works, and threads that prepare batches end. In fairseq the log begins with all
settings in one line, the modules of the model, and how batches are made. Here it has the command; `LOGLEVEL=DEBUG`
shows the rest. Warnings and errors stay, but those of `WARNINGS`.
"""

import atexit
import logging
import math
import os
import re
import shlex
import struct
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import fairseq.data.data_utils
import fairseq.data.language_pair_dataset
import fairseq.data.token_block_dataset
import numpy as np
from fairseq.data.indexed_dataset import _code_to_dtype, infer_dataset_impl
from fairseq.data.iterators import BackgroundConsumer
from fairseq.logging import metrics, progress_bar
from omegaconf import DictConfig
from torch import nn

LONGEST_WAIT = 30.0  # seconds, for a batch that never comes
_HEADER = struct.Struct("<9sQBQ")  # magic, version, type, number of rows; then their sizes and places
_ROW = 4 + 8
#: Warnings about old functions of libraries that fairseq and Hydra use, and about pinned memory on a CPU.
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


def give_numpy_compat() -> None:
    """Gives three modules of fairseq a numpy with what numpy 2 no longer has; numpy itself stays as it is."""
    data = fairseq.data
    for module in (data.data_utils, data.token_block_dataset, data.language_pair_dataset):
        module.np = types.ModuleType("numpy")  # type: ignore[attr-defined]
        vars(module.np).update(vars(np), compat=types.SimpleNamespace(long=int), percentile=_percentile)


def _percentile(*args: Any, interpolation: str = "linear", **kwargs: Any) -> Any:
    """numpy's function with the old name of its argument `method`, which `--num-batch-buckets` needs."""
    return np.percentile(*args, method=interpolation, **kwargs)  # type: ignore[call-overload]


def dataset_exists(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Returns whether there is a dataset; ValueError where only one of its two files is there."""
    _check_pair(path)
    return original(path, *args, **kwargs)


def make_dataset(original: Callable[..., Any], path: str, impl: str, *args: Any, **kwargs: Any) -> Any:
    """Opens `path`.idx and `path`.bin; ValueError if one is missing, has a wrong size, or an id is too large.

    In fairseq such data give other samples, or an error that names no file. All ids are read, a gigabyte of them in
    about 0.1 seconds if the file is in memory.
    """
    index, tokens = f"{path}.idx", f"{path}.bin"
    _check_pair(path)
    if os.path.exists(index) and infer_dataset_impl(path) in (None, "mmap"):  # None: the beginning is missing
        with open(index, "rb") as file:
            header = file.read(_HEADER.size)
        *_, code, rows = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        _check_size(index, _HEADER.size + rows * _ROW)
        number = int(np.fromfile(index, np.int32, rows, offset=_HEADER.size).sum(dtype=np.int64))
        _check_size(tokens, number * (width := np.dtype(_code_to_dtype[code]).itemsize))
        words = len(kwargs.get("dictionary") or ())
        # a negative id is a large one
        if number and words and (largest := int(np.memmap(tokens, f"u{width}", "r").max())) >= words:
            raise ValueError(
                f"{tokens} has the id {largest}, and the dictionary ends at {words - 1}: damaged, or of another "
                "dictionary; run hat preprocess again"
            )
    return original(path, impl, *args, **kwargs)


def _check_pair(path: str) -> None:
    if len(absent := [name for name in (f"{path}.idx", f"{path}.bin") if not os.path.exists(name)]) == 1:
        raise ValueError(f"{absent[0]} is missing; run hat preprocess again")


def _check_size(path: str, expected: int) -> None:
    if (size := os.path.getsize(path)) != expected:
        raise ValueError(f"{path} has {size} bytes instead of {expected}: damaged; run hat preprocess again")


@atexit.register
def end_threads() -> None:
    """Has Python wait for the batch that each thread of fairseq is preparing.

    In fairseq these are daemon threads: one inside of PyTorch at exit aborts the process with status 134.
    """
    threads = [thread for thread in threading.enumerate() if isinstance(thread, BackgroundConsumer)]
    for thread in threads:
        thread._max_len = 0  # its loop ends after the next batch
        with thread._queue.not_full:
            thread._queue.maxsize = math.inf  # a full queue would hold it
            thread._queue.not_full.notify_all()
    for thread in threads:
        thread.join(LONGEST_WAIT)


def shorten_log() -> None:
    """Hides warnings and, unless `LOGLEVEL` is DEBUG, lines, by filters: fairseq resets the levels of loggers."""
    for message in WARNINGS:
        warnings.filterwarnings("ignore", message)
    for name in HIDDEN if os.environ.get("LOGLEVEL", "").upper() != "DEBUG" else ():
        logging.getLogger(name).addFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    """Whether a record is shown; that of all settings becomes the command."""
    if record.levelno > logging.INFO:
        return True
    if isinstance(record.msg, DictConfig):
        record.msg = f"settings: {shlex.join(sys.argv[1:])}"
    return not (isinstance(record.msg, nn.Module) or re.match(HIDDEN[record.name], str(record.msg)))


def _log_minutes_left(trainer: Any, first: int, begin: float) -> None:
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


def train_step(original: Callable[..., Any], self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
    """Makes an update without the empty batches that fill up the last one of an epoch, unless there is no other.

    In fairseq a process whose last batch of an update is empty drops the gradients of its earlier ones. If one of
    several processes runs out of memory, the run ends; in fairseq the others would wait, or count its samples.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update
            and its samples. fairseq's error in its search for the module would hide it.
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
        raise FloatingPointError(
            f"update {self.get_num_updates() + 1}: {cause}; sample ids {', '.join(ids)}; the checkpoints are of "
            "earlier updates. Try a lower --lr, more --warmup-updates or --clip-norm 1"
        ) from None
    if hasattr(self, "epoch_iterator"):
        _log_minutes_left(self, *first)
    return logged
