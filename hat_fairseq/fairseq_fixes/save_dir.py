"""The `--save-dir` of a training: one training at a time, room for a checkpoint, and which checkpoint is restored."""

import fcntl
import logging
import os
import pickle
import re
import shutil
import socket
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import fairseq.distributed.utils as distributed_utils
import torch
from fairseq.trainer import Trainer

from ..data.outputs import lock
from .checkpoints import CheckpointError, check_file
from .replace import replaces

logger = logging.getLogger(__name__)
LAST = "checkpoint_last.pt"
STRICT = "--strict-restore"
OF_A_RUN = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.+)\.pt")
_locks: dict[str, IO[str]] = {}  # POSIX locks end with the process, and processes that load data do not inherit them


def prepare(cfg: Any, trainer: Any) -> str | None:
    """The checkpoint to restore instead of `checkpoint_last.pt`, if any; for the first process, before it restores.

    Raises:
        CheckpointError: another training writes there, no checkpoint has room, or there are only damaged ones.
    """
    folder = Path(cfg.save_dir)
    known = 0 if cfg.no_save or distributed_utils.get_global_rank() else _lock(folder, trainer)
    if cfg.restore_file != LAST or trainer.checkpoint_suffix:  # with a suffix each process has files of its own
        return None
    last, problem = folder / LAST, "is missing, and there are other checkpoints of a run"
    if last.exists():
        try:
            updates_in(last, whole=True)
            return None
        except CheckpointError as error:
            problem = f"is broken ({error})"
    for updates, path in newest_first(folder):
        try:
            updates_in(path, whole=True)
        except CheckpointError:
            continue
        if STRICT in sys.argv:
            raise CheckpointError(f"{last} {problem}; without {STRICT} the training goes on from {path}")
        lost = max(known - updates, 0) if known else "an unknown number of"
        logger.warning(f"{last} {problem}: goes on from {path}, after update {updates}; {lost} updates are lost")
        return str(path)
    if any(OF_A_RUN.fullmatch(path.name) for path in folder.glob("*.pt")):
        raise CheckpointError(f"{last} {problem}, and no other is whole: copy one there, or choose another --save-dir")
    return None


def _lock(folder: Path, trainer: Any) -> int:
    """Locks the folder; the number of updates that were saved last in it, 0 if that is not known."""
    folder.mkdir(parents=True, exist_ok=True)
    file = _locks[str(folder)] = open(folder / "training.lock", "a+", encoding="utf-8")  # noqa: SIM115
    file.seek(0)
    recorded, *owner = file.read().split(maxsplit=1) or ["0"]
    updates = int(recorded) if recorded.isdecimal() else 0
    try:
        lock(file, folder, function=fcntl.lockf)
    except BlockingIOError:
        raise CheckpointError(
            f"--save-dir {folder}: another training ({' '.join(owner)}) writes its checkpoints there; choose another "
            "--save-dir, or wait for its end"
        ) from None
    _record(file, updates)
    # A checkpoint is written beside the older one, and Adam keeps two numbers for each weight.
    copies = 1 if trainer.cfg.checkpoint.no_save_optimizer_state else 3
    needed = sum(weights.nbytes for weights in trainer.get_model().parameters()) * copies
    free = shutil.disk_usage(folder).free + sum(path.stat().st_size for path in folder.glob("*.tmp"))
    if free < needed:
        raise CheckpointError(f"--save-dir {folder}: a checkpoint takes about {needed:,} bytes, and {free:,} are free")
    return updates


def folder_of_training() -> Path | None:
    """The `--save-dir` that this process writes checkpoints to; None in another process, or before it restores."""
    return Path(next(reversed(_locks))) if _locks else None


def _record(file: IO[str], updates: int) -> None:
    file.truncate(0)
    file.write(f"{updates} process {os.getpid()} on {socket.gethostname()}")
    file.flush()


@replaces(Trainer, "save_checkpoint")
def save_checkpoint(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Writes a checkpoint and records its number of updates."""
    written = original(self, *args, **kwargs)
    if written and self.cfg.checkpoint.save_dir in _locks:
        _record(_locks[self.cfg.checkpoint.save_dir], self.get_num_updates())
    return written


def newest_first(folder: Path) -> list[tuple[int, Path]]:
    """The readable checkpoints of a run in its folder, with their numbers of updates; their tensors are not read."""
    found = []
    for path in folder.glob("checkpoint*.pt"):
        try:
            found += [(updates_in(path), path)] if OF_A_RUN.fullmatch(path.name) else []
        except CheckpointError:
            continue
    return sorted(found, reverse=True)


def updates_in(path: Path, whole: bool = False) -> int:
    """The number of updates of a checkpoint; `whole` also compares its checksums.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        if whole:
            check_file(str(path))
        state = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
        return int(state["optimizer_history"][-1]["num_updates"])
    except CheckpointError:
        raise
    except (OSError, RuntimeError, LookupError, TypeError, ValueError, EOFError, pickle.UnpicklingError):
        raise CheckpointError(f"not a complete checkpoint, {path.stat().st_size} bytes") from None
