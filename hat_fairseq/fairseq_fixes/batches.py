"""Batches of an epoch: together they have every sample once, and random choices differ from epoch to epoch.

fairseq drops a last batch that does not fill up to `--required-batch-size-multiple`, also in validation and generation,
and with `--grouped-shuffling` the batches that are not one for each process.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def batch_by_size(original: Callable[..., Any], indices: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """Makes fairseq's batches of `indices`, in their order; what it would drop is the last batch."""
    indices = np.asarray(indices if hasattr(indices, "__len__") else list(indices), dtype=np.int64)
    if not len(indices):
        return []
    batches = list(original(indices, *args, **kwargs))
    rest = indices[sum(map(len, batches)) :]
    return [*batches, rest] if len(rest) else batches


def ordered_batches(original: Callable[..., Any], self: Any, epoch: int, fix_to_gpus: bool, shuffle: bool) -> list[Any]:
    """Orders the batches of one process; with `--grouped-shuffling` an incomplete group is the last one."""
    own = original(self, epoch, fix_to_gpus, shuffle)
    number = len(self.frozen_batches)
    first = number - number % self.num_shards
    if shuffle and self.grouped_shuffling and first < number and len(own) * self.num_shards == first:
        return [*own, self.frozen_batches[first + self.shard_id] if first + self.shard_id < number else []]
    return own


def start_workers_anew(iterator: Any, task: Any) -> None:
    """Starts the processes that load data in each epoch, unless the task has an option for it.

    In fairseq they live on with the dataset of the first epoch, and repeat its random masks.
    """
    if not hasattr(getattr(task, "cfg", None), "reuse_dataloader"):
        iterator.reuse_dataloader = False
