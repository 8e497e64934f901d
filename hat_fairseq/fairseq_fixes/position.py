"""The place of a resumed training in its data, also with other batches, another seed or other numbers of processes.

fairseq records the number of batches that were seen, which is wrong if the batches change. Here a checkpoint also has a
bit for each sample that was seen in the epoch. The rest of the epoch consists of the other samples.
"""

import copy
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data.iterators import EpochBatchIterator, ShardedIterator

from . import best, data
from .resuming import current_trainer
from .trust import CheckpointError

CHUNKS, CHUNK = 64, 1 << 16  # of a file of data, and bytes: smaller files are read as a whole


def get_train_iterator(original: Callable[..., Any], self: Any, epoch: int, *args: Any, **kwargs: Any) -> Any:
    """Annotates the iterator with the fingerprint of the data, the epoch of its batches and the samples seen.

    ValueError for a seed of each epoch where the batches are made once: it would be that of the first epoch of a run.
    """
    data.keep_validation_data(self)
    iterator, options = original(self, epoch, *args, **kwargs), self.cfg.dataset
    self.epoch_iterator = iterator
    is_once = not options.update_epoch_batch_itr and self.task.can_reuse_epoch_itr(iterator.dataset)
    if options.update_ordered_indices_seed and is_once:
        raise ValueError("--update-ordered-indices-seed has no effect without --update-epoch-batch-itr True; add it")
    data.start_workers_anew(iterator, self.task)
    if type(iterator) is EpochBatchIterator and not iterator._supports_prefetch and not hasattr(iterator, "resumed_at"):
        if getattr(self, "data_fingerprints", None) is None:
            subsets = self.cfg.dataset.train_subset, self.cfg.dataset.valid_subset.split(",")[0]
            self.data_fingerprints = tuple(fingerprint(self.cfg, subset) for subset in subsets)
        iterator.batch_epoch, (iterator.data, iterator.valid_data) = epoch, self.data_fingerprints
        iterator.resumed_at = 0, 0, np.zeros(len(iterator.dataset), bool)  # epoch, number of batches, samples seen
    return iterator


def fingerprint(cfg: Any, subset: str) -> str:
    """Returns a digest of names, sizes and contents of binary data; of large files, of 64 chunks."""
    digest, names = hashlib.blake2b(digest_size=16), f"{subset}*"
    for folder in map(Path, str(getattr(cfg.task, "data", None) or "").split(os.pathsep)):
        for path in sorted([*folder.glob(names), *folder.glob(f"*/{names}")]):
            if path.suffix in (".bin", ".idx"):
                size = path.stat().st_size
                digest.update(f"{path.relative_to(folder)} {size}\n".encode())
                with open(path, "rb") as file:
                    for start in range(0, size, max(size // CHUNKS, CHUNK)):
                        file.seek(start)
                        digest.update(file.read(CHUNK))
    return digest.hexdigest()


def _remaining(iterator: Any, epoch: int, shuffle: bool, seen: np.ndarray) -> list[list[int]]:
    """The batches of all processes in their order, without the samples that were seen."""
    number, shards = iterator.num_shards if iterator.grouped_shuffling else 1, []
    assert iterator.frozen_batches is not None  # made here, once for all copies
    for shard in range(number):
        other = copy.copy(iterator)
        other.num_shards, other.shard_id, other.rest = number, shard, None
        shards.append(other.ordered_batches(epoch, False, shuffle))
    ordered = (np.asarray(batch, np.int64) for group in zip(*shards, strict=True) for batch in group)
    return [remaining.tolist() for batch in ordered if len(remaining := batch[~seen[batch]])]


def state_dict(original: Callable[..., Any], self: Any) -> dict[str, Any]:
    """Returns fairseq's epoch and number of batches, and the samples in them."""
    state = original(self)
    if hasattr(self, "resumed_at"):
        position = state["position"] = {"data": self.data, "valid": self.valid_data, "drawn": self.batch_epoch}
        if state["iterations_in_epoch"]:
            epoch, before, seen_before = self.resumed_at
            if epoch != state["epoch"]:
                before, seen_before = 0, np.zeros_like(seen_before)
            order = _remaining(self, state["epoch"], state["shuffle"], seen_before)
            seen = seen_before.copy()
            number = (state["iterations_in_epoch"] - before) * self.num_shards
            seen[[sample for batch in order[:number] for sample in batch]] = True
            position["seen"] = torch.from_numpy(np.packbits(seen))
    return state


def load_state_dict(original: Callable[..., Any], self: Any, state: dict[str, Any]) -> None:
    """Goes on after the samples that were seen; CheckpointError if the data are others."""
    position, trainer = state.get("position"), current_trainer.get()
    if position is None or trainer is None or not hasattr(self, "resumed_at"):  # an older checkpoint
        return original(self, state)
    if position["data"] != self.data:
        raise CheckpointError(
            f"the training data in {trainer.cfg.task.data} differ from those of the checkpoint, and its place in them "
            "is lost: --reset-dataloader starts with epoch 1 of these data"
        )
    if position.get("valid", self.valid_data) != self.valid_data:
        best.forget(f"the validation data in {trainer.cfg.task.data} differ from those of the checkpoint")
    epoch, number, shuffle = state["epoch"], state["iterations_in_epoch"], state["shuffle"]
    if not callable(self.batch_sampler) and position["drawn"] != self.batch_epoch:  # once in a run, in its first epoch
        first = trainer.get_train_iterator(position["drawn"], load_dataset=False, disable_iterator_cache=True)
        self._frozen_batches, self.batch_epoch, trainer.epoch_iterator = first.frozen_batches, first.batch_epoch, self
        self.dataset.set_epoch(epoch)
    if not number:
        return original(self, state)
    seen = np.unpackbits(position["seen"].numpy(), count=len(self.dataset)).astype(bool)
    remaining = _remaining(self, epoch, shuffle, seen)
    if not remaining:  # the others are too long for the options of this run
        return original(self, {**state, "epoch": epoch + 1, "iterations_in_epoch": 0})
    my_batches = list(ShardedIterator(remaining, self.num_shards, self.shard_id, fill_value=[]))
    self.rest, self.resumed_at = (epoch, [[]] * number + my_batches), (epoch, number, seen)
    original(self, state)
