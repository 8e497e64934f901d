"""Data: damaged files are refused, each sample counts once in an epoch, and padding and empty batches do not count.

fairseq drops a last batch that does not fill up to `--required-batch-size-multiple`, also in validation and generation.
Random choices differ from epoch to epoch, numpy 2 works, and threads that prepare batches end.
"""

import atexit
import inspect
import math
import os
import struct
import threading
import types
from collections.abc import Callable
from typing import Any

import fairseq.data.data_utils
import fairseq.data.language_pair_dataset
import fairseq.data.token_block_dataset
import numpy as np
from fairseq.data.indexed_dataset import _code_to_dtype, infer_dataset_impl
from fairseq.data.iterators import BackgroundConsumer

from ..data.files import check_lfs

LONGEST_WAIT = 30.0  # seconds, for a batch that never comes
_HEADER = struct.Struct("<9sQBQ")  # magic, version, type, number of rows; then their sizes and places
_ROW = 4 + 8


def give_numpy_compat() -> None:
    """Gives three modules of fairseq a numpy with what numpy 2 no longer has; numpy itself stays as it is.

    Patch of fairseq: `np.compat.long` becomes int, and `interpolation=` becomes `method=`.
    """
    data = fairseq.data
    for module in (data.data_utils, data.token_block_dataset, data.language_pair_dataset):
        module.np = types.ModuleType("numpy")
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
    Patch of fairseq: `MMapIndexedDataset` compares the sizes of its files with the header.
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
        size = len(kwargs.get("dictionary") or ())
        # read as unsigned, negative ids fail the same check
        if number and size and (largest := int(np.memmap(tokens, f"u{width}", "r").max())) >= size:
            raise ValueError(
                f"{tokens} has the id {largest}, and the dictionary ends at {size - 1}: damaged, or of another "
                "dictionary; run hat preprocess again"
            )
    return original(path, impl, *args, **kwargs)


def _check_pair(path: str) -> None:
    for name in (f"{path}.idx", f"{path}.bin"):
        check_lfs(name)
    if len(absent := [name for name in (f"{path}.idx", f"{path}.bin") if not os.path.exists(name)]) == 1:
        raise ValueError(f"{absent[0]} is missing; run hat preprocess again")


def _check_size(path: str, expected: int) -> None:
    if (size := os.path.getsize(path)) != expected:
        raise ValueError(f"{path} has {size} bytes instead of {expected}: damaged; run hat preprocess again")


def batch_by_size(original: Callable[..., Any], indices: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """Makes fairseq's batches of `indices`, in their order; what it would drop is the last batch.

    ValueError for a sample with more tokens than a batch may have.
    Patch of fairseq: `batch_by_size_fast` keeps the last batch, and its assertion names `max_tokens`.
    """
    indices = np.asarray(indices if hasattr(indices, "__len__") else list(indices), dtype=np.int64)
    if not len(indices):
        return []
    try:
        batches = list(original(indices, *args, **kwargs))
    except AssertionError:
        arguments = inspect.signature(original).bind(indices, *args, **kwargs).arguments
        most, longest = arguments.get("max_tokens"), max(map(arguments["num_tokens_fn"], indices))
        if most is None or longest <= most:
            raise
        raise ValueError(
            f"--max-tokens {most} (in a validation --max-tokens-valid) is too low: one sample has {longest} tokens"
        ) from None
    remaining = indices[sum(map(len, batches)) :]
    return [*batches, remaining] if len(remaining) else batches


def ordered_batches(original: Callable[..., Any], self: Any, epoch: int, fix_to_gpus: bool, shuffle: bool) -> list[Any]:
    """Orders the batches of one process; `rest` (`position.py`) takes the place of those of its epoch."""
    rest = getattr(self, "rest", None)
    return list(rest[1]) if rest and rest[0] == epoch else original(self, epoch, fix_to_gpus, shuffle)


def start_workers_anew(iterator: Any, task: Any) -> None:
    """Starts the processes that load data in each epoch, unless the task has an option for it.

    In fairseq they live on with the dataset of the first epoch, and repeat its random masks.
    Patch of fairseq: `reuse_dataloader` is False unless a task sets it.
    """
    if not hasattr(getattr(task, "cfg", None), "reuse_dataloader"):
        iterator.reuse_dataloader = False


def keep_validation_data(trainer: Any) -> None:
    """Keeps the split that validation has loaded, if training is about to load it again for itself."""
    split, task = trainer.cfg.dataset.train_subset, trainer.task
    if split in task.datasets and split in trainer.cfg.dataset.valid_subset.split(","):
        vars(trainer).setdefault("validation_data", {split: task.datasets[split]})


def get_valid_iterator(original: Callable[..., Any], self: Any, subset: str, *args: Any, **kwargs: Any) -> Any:
    """Returns an iterator for validation alone.

    In fairseq a split for training and validation has one dataset and one iterator, so each validation counts as an
    epoch of training, whose updates are skipped.
    Patch of fairseq: `Trainer.get_valid_iterator` asks for an iterator that is not cached.
    """
    task = self.task
    training = task.datasets, task.dataset_to_epoch_iter
    task.datasets = {**task.datasets, **vars(self).get("validation_data", {})}
    task.dataset_to_epoch_iter = vars(self).setdefault("validation_iterators", {})
    try:
        return original(self, subset, *args, **kwargs)
    finally:
        task.datasets, task.dataset_to_epoch_iter = training


@atexit.register
def end_threads() -> None:
    """Has Python wait for the batch that each thread of fairseq is preparing.

    In fairseq these are daemon threads: one inside of PyTorch at exit aborts the process with status 134.
    Patch of fairseq: `BackgroundConsumer` is no daemon, and `BufferedIterator` ends it at exit.
    """
    threads = [thread for thread in threading.enumerate() if isinstance(thread, BackgroundConsumer)]
    for thread in threads:
        thread._max_len = 0  # its loop ends after the next batch
        with thread._queue.not_full:
            thread._queue.maxsize = math.inf  # a full queue would hold it
            thread._queue.not_full.notify_all()
    for thread in threads:
        thread.join(LONGEST_WAIT)


def train_step(original: Callable[..., Any], self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
    """Makes an update without the empty batches that fill up the last one of an epoch, unless there is no other.

    In fairseq a process whose last batch of an update is empty drops the gradients of its earlier ones. If one of
    several processes runs out of memory, the run ends; in fairseq the others would wait, or count its samples.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update
            and its samples. fairseq's error in its search for the module would hide it.

    Patch of fairseq: `Trainer.train_step` leaves out empty samples, and raises for memory with several processes.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    try:
        return original(self, samples, raise_oom or self.data_parallel_world_size > 1)
    except Exception as error:
        cause = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(cause, FloatingPointError):
            raise
        ids = [str(int(number)) for sample in samples if sample and "id" in sample for number in sample["id"]]
        raise FloatingPointError(
            f"update {self.get_num_updates() + 1}: {cause}; sample ids {', '.join(ids)}; the checkpoints are of "
            "earlier updates. Try a lower --lr, more --warmup-updates or --clip-norm 1"
        ) from None
