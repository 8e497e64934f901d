"""Restoring a training from its `--save-dir`: one training at a time, from the newest whole checkpoint, if it fits."""

import contextlib
import contextvars
import copy
import fcntl
import logging
import os
import re
import socket
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import fairseq.distributed.utils as distributed_utils
import torch
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY

from ..data.outputs import lock
from ..package_files import is_package
from . import checkpoints, signals
from .checkpoints import CheckpointError, check_file

logger = logging.getLogger(__name__)
LAST = "checkpoint_last.pt"
CHECKPOINT_NAME = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.+)\.pt")
# settings that change the function of a model and no shape
SAME = (
    *("encoder_attention_heads", "decoder_attention_heads", "encoder_normalize_before", "decoder_normalize_before"),
    *("activation_fn", "no_scale_embedding", "pooling_cells"),
)
# the trainer whose checkpoint is being read
current_trainer: contextvars.ContextVar[Any] = contextvars.ContextVar("current_trainer", default=None)
_locks: list[IO[str]] = []  # POSIX locks end with the process, and processes that load data do not inherit them


def load_checkpoint(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Restores a training; ends the process if it already has `--max-update` updates; in fairseq it would do one more.

    CheckpointError for a `--restore-file` that does not exist, which in fairseq trains from scratch, and for weights
    that do not fit, with the names of the tensors.
    """
    if cfg.restore_file != LAST and not PathManager.exists(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file} does not exist")
    if is_package(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file}: a package has no optimizer state to go on with")
    signals.watch()
    if (instead := _chosen_by_first_process(cfg, trainer)) is not None:
        cfg = copy.deepcopy(cfg)
        cfg.restore_file, cfg.finetune_from_model = instead, None
    token = current_trainer.set(trainer)
    try:
        restored = original(cfg, trainer, **kwargs)
    except Exception as error:
        failed = re.match(r"Cannot load model parameters from checkpoint (.*?);", str(error))
        if failed and isinstance(error.__context__, ValueError):  # it names the tensors, or the dictionary
            raise CheckpointError(f"{failed[1]}: {error.__context__}") from None
        raise
    finally:
        current_trainer.reset(token)
    max_update = trainer.cfg.optimization.max_update
    if 0 < max_update <= trainer.get_num_updates():
        logger.info(f"the checkpoint has {trainer.get_num_updates()} updates: nothing to train (--max-update)")
        sys.exit(0)
    return restored


def _chosen_by_first_process(cfg: Any, trainer: Any) -> str | None:
    """Gives all processes the result of `_choose`, or its error."""
    path = problem = None
    if trainer.is_data_parallel_master:
        try:
            path = _choose(cfg, trainer)
        except CheckpointError as error:
            problem = str(error)
    if trainer.data_parallel_world_size > 1:
        group, device = trainer.data_parallel_process_group, trainer.device
        path, problem = distributed_utils.broadcast_object((path, problem), 0, group, device)
    if problem is not None:
        raise CheckpointError(problem)
    return path


def _choose(cfg: Any, trainer: Any) -> str | None:
    """Locks the folder, and returns the checkpoint to restore instead of `checkpoint_last.pt`, if any.

    CheckpointError if another training writes there, or there are only damaged checkpoints.
    """
    folder = Path(cfg.save_dir)
    if not cfg.no_save and distributed_utils.get_global_rank() == 0:
        _lock(folder)
    if cfg.restore_file != LAST or trainer.checkpoint_suffix:  # with a suffix each process has files of its own
        return None
    last = folder / LAST
    if not (problem := _problem_of(last)):
        return None
    for updates, path in newest_first(folder):
        if not _problem_of(path):
            logger.warning(f"{last} {problem}: goes on from {path}, after update {updates}")
            return str(path)
    if _checkpoints_in(folder):
        raise CheckpointError(f"{last} {problem}, and no other is whole: copy one there, or choose another --save-dir")
    return None


def _lock(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _locks.append(file := open(folder / "training.lock", "a+", encoding="utf-8"))  # noqa: SIM115
    try:
        lock(file, folder, function=fcntl.lockf)
    except BlockingIOError:
        file.seek(0)
        raise CheckpointError(
            f"--save-dir {folder}: another training ({file.read()}) writes its checkpoints there; choose another "
            "--save-dir, or wait for its end"
        ) from None
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()


def _problem_of(path: Path) -> str:
    """Why a checkpoint cannot be restored; empty if it is whole."""
    if not path.exists():
        return "is missing"
    try:
        check_file(str(path))
        _updates_in(path)
    except (OSError, ValueError) as error:
        return f"is broken ({error})"
    return ""


def newest_first(folder: Path) -> list[tuple[int, Path]]:
    """Lists the readable checkpoints of a run with their numbers of updates; their tensors are not read."""
    readable = []
    for path in _checkpoints_in(folder):
        with contextlib.suppress(OSError, ValueError):
            readable.append((_updates_in(path), path))
    return sorted(readable, reverse=True)


def _checkpoints_in(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.pt") if CHECKPOINT_NAME.fullmatch(path.name)]


def _updates_in(path: Path) -> int:
    with checkpoints.named_failures(str(path)):
        state = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
        return int(state["optimizer_history"][-1]["num_updates"])


def load_checkpoint_to_cpu(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint; CheckpointError if a training is restored from it with another of the settings `SAME`."""
    state, trainer = checkpoints.load(original, path, *args, **kwargs), current_trainer.get()
    saved = (state.get("cfg") or {}).get("model")
    if trainer is None or saved is None:  # converted weights have no settings
        return state
    model = trainer.get_model()
    current = getattr(model, "config", trainer.cfg.model)
    is_same_model = ARCH_MODEL_REGISTRY.get(getattr(saved, "_name", None)) is type(model)
    for name in SAME:
        before, now = getattr(saved, name, None), getattr(current, name, None)
        if before is None and is_same_model:  # it has only the flags that were given and those of its architecture
            before = getattr(type(current), name, None)
        if before is None and name == "pooling_cells" and getattr(saved, "encoder_attention", None) == "pooling":
            before = "document"  # the only cells before there was this setting
        if before is not None and now is not None and str(before) != str(now):
            raise CheckpointError(
                f"{path}: trained with --{name.replace('_', '-')} {before}, and this run has {now}: its weights would "
                "compute another function"
            )
    return state
