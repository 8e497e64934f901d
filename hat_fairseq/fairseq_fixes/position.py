"""Resumes a training at the right sample, also with other batches, another seed or another number of processes.

fairseq records the number of batches that were seen, which is wrong if the batches change. Here a checkpoint also has a
bit for each sample that was seen in the epoch. The rest of the epoch consists of the other samples.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data.iterators import EpochBatchIterator, ShardedIterator

from .checkpoints import CheckpointError
from .restoring import current_trainer

CHUNKS, CHUNK = 64, 1 << 16  # of a file, and bytes: smaller files are read as a whole


def get_train_iterator(original: Callable[..., Any], self: Any, epoch: int, *args: Any, **kwargs: Any) -> Any:
    """Annotates the iterator with the fingerprint of the data, the epoch of its batches and the samples seen."""
    iterator = self.epoch_iterator = original(self, epoch, *args, **kwargs)
    if type(iterator) is EpochBatchIterator and not iterator._supports_prefetch and not hasattr(iterator, "entered"):
        self.data_fingerprint = getattr(self, "data_fingerprint", None) or fingerprint(self.cfg)
        iterator.drawn, iterator.data = epoch, self.data_fingerprint
        iterator.entered = 0, 0, np.zeros(len(iterator.dataset), bool)  # epoch, number of batches, samples before
    return iterator


def fingerprint(cfg: Any) -> str:
    """Returns a digest of names, sizes and contents of the binary training data; of large files, of 64 chunks."""
    digest, names = hashlib.blake2b(digest_size=16), f"{cfg.dataset.train_subset}*"
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


def _order(iterator: Any, epoch: int, shuffle: bool, seen: np.ndarray) -> list[list[int]]:
    """The batches of all processes without the samples that were seen."""
    own, parts = (iterator.num_shards, iterator.shard_id), []
    number = iterator.num_shards if iterator.grouped_shuffling else 1
    for shard in range(number):
        iterator.num_shards, iterator.shard_id = number, shard
        parts.append(EpochBatchIterator.ordered_batches(iterator, epoch, False, shuffle))
    iterator.num_shards, iterator.shard_id = own
    batches = (np.asarray(batch, np.int64) for group in zip(*parts, strict=True) for batch in group)
    return [rest.tolist() for batch in batches if len(rest := batch[~seen[batch]])]


def state_dict(original: Callable[..., Any], self: Any) -> dict[str, Any]:
    """fairseq's epoch and number of batches, and the samples in them."""
    state = original(self)
    if hasattr(self, "entered"):
        position = state["position"] = {"data": self.data, "drawn": self.drawn}
        if state["iterations_in_epoch"]:
            epoch, before, entered = self.entered
            if epoch != state["epoch"]:
                before, entered = 0, np.zeros_like(entered)
            order = _order(self, state["epoch"], state["shuffle"], entered)
            seen = entered.copy()
            number = (state["iterations_in_epoch"] - before) * self.num_shards
            seen[[sample for batch in order[:number] for sample in batch]] = True
            position["seen"] = torch.from_numpy(np.packbits(seen))
    return state


def load_state_dict(original: Callable[..., Any], self: Any, state: dict[str, Any]) -> None:
    """Goes on after the samples that were seen; CheckpointError if the data are others."""
    position, trainer = state.get("position"), current_trainer.get()
    if position is None or trainer is None or not hasattr(self, "entered"):  # an older checkpoint
        return original(self, state)
    if position["data"] != self.data:
        raise CheckpointError(
            f"the training data in {trainer.cfg.task.data} differ from those of the checkpoint, and its place in them "
            "is lost: --reset-dataloader starts with epoch 1 of these data"
        )
    epoch, number, shuffle = state["epoch"], state["iterations_in_epoch"], state["shuffle"]
    if not callable(self.batch_sampler) and position["drawn"] != self.drawn:  # once in a run, in its first epoch
        first = trainer.get_train_iterator(position["drawn"], load_dataset=False, disable_iterator_cache=True)
        self._frozen_batches, self.drawn, trainer.epoch_iterator = first.frozen_batches, first.drawn, self
        self.dataset.set_epoch(epoch)
    if not number:
        return original(self, state)
    seen = np.unpackbits(position["seen"].numpy(), count=len(self.dataset)).astype(bool)
    rest = _order(self, epoch, shuffle, seen)
    if not rest:  # the others are too long for the options of this run
        return original(self, {**state, "epoch": epoch + 1, "iterations_in_epoch": 0})
    own = [[]] * number + list(ShardedIterator(rest, self.num_shards, self.shard_id, fill_value=[]))
    self.epoch, self.entered = epoch, (epoch, number, seen)
    self.ordered_batches = lambda *_: own
    self._next_epoch_itr = self._get_iterator_for_epoch(epoch, shuffle, offset=number)
    del self.ordered_batches
    self.epoch_batch_sampler.ordered_batches = self.ordered_batches  # of the next epochs
