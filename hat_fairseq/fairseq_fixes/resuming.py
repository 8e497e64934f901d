"""Resuming a training from its `--save-dir`: one training at a time, from the newest whole checkpoint, if it fits.

Its place in the data is in `position.py`.
"""

import contextlib
import contextvars
import copy
import fcntl
import logging
import os
import re
import socket
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import fairseq.distributed.utils as distributed_utils
import torch
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY

from ..data.dictionary import LABELS_FINGERPRINT
from ..data.outputs import lock, open_as_it_is
from ..model_folder import is_model_folder
from . import best, checkpoints, signals
from .trust import CheckpointError, check_file, named_failures

logger = logging.getLogger(__name__)
LAST = "checkpoint_last.pt"
HOLDER = re.compile(r"(process \d+ on \S*)?")  # the content of training.lock
CHECKPOINT_NAME = re.compile(r"checkpoint(\d+|_\d+_\d+|_best|_last|\.best_.+)\.pt")
# settings that change the function of a model and no shape
SAME = (
    *("encoder_attention_heads", "decoder_attention_heads", "encoder_normalize_before", "decoder_normalize_before"),
    *("activation_fn", "no_scale_embedding", "encoder_family"),
)
# the trainer whose checkpoint is being read
current_trainer: contextvars.ContextVar[Any] = contextvars.ContextVar("current_trainer", default=None)
_locks: list[IO[str]] = []  # POSIX locks end with the process, and processes that load data do not inherit them


def load_checkpoint(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Restores a training; ends the process if it already has `--max-update` updates, or has stopped by `--patience`.

    In fairseq it would go on. CheckpointError for a `--restore-file` that does not exist, which in fairseq trains from
    scratch, and for weights that do not fit, with the names of the tensors.
    """
    last = Path(cfg.save_dir) / LAST
    _check_flags(cfg, last)
    signals.watch()
    instead = _chosen_by_first_process(cfg, trainer)
    has_own = cfg.restore_file == LAST and (instead is not None or last.exists())
    goes_on = has_own and not any(cfg[flag] for flag in signals.RESETS)
    if instead is not None:
        cfg = copy.deepcopy(cfg)
        cfg.restore_file, cfg.finetune_from_model = instead, None
    restored = _restored(original, cfg, trainer, **kwargs)
    is_same = best.is_same_figure(getattr(trainer, "saved_settings", None) or trainer.cfg, trainer.cfg)
    validations = best.restore_patience(_patience_of(*restored) if goes_on and is_same else None)
    if end := _end_of(trainer, cfg.patience, validations):
        logger.info(end)
        sys.exit(0)
    return restored


def _check_flags(cfg: Any, last: Path) -> None:
    if cfg.restore_file != LAST and not PathManager.exists(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file} does not exist")
    if cfg.continue_once and not PathManager.exists(cfg.continue_once):
        raise CheckpointError(f"--continue-once {cfg.continue_once} does not exist")
    is_other = cfg.restore_file != LAST and os.path.realpath(cfg.restore_file) != os.path.realpath(last)
    if last.exists() and is_other and not cfg.no_save:
        logger.warning(f"--restore-file {cfg.restore_file}: the training begins there, and replaces {last}")
    if last.exists() and cfg.restore_file == LAST and cfg.finetune_from_model:
        logger.info(f"--finetune-from-model has no effect here: the training resumes from {last}")
    if is_model_folder(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file}: a folder has no optimizer state to resume")


def _restored(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Returns what fairseq restores; CheckpointError that says what does not fit."""
    token = current_trainer.set(trainer)
    try:
        return original(cfg, trainer, **kwargs)
    except Exception as error:
        if isinstance(error, KeyError) and "lr_scheduler" in traceback.extract_tb(error.__traceback__)[-1].filename:
            raise CheckpointError(
                f"{cfg.restore_file}: the state of its learning rate has no {error}, as that of another --lr-scheduler "
                "has not; --reset-lr-scheduler begins the schedule anew"
            ) from None
        failed = re.match(r"Cannot load model parameters from checkpoint (.*?);", str(error))
        if failed and isinstance(error.__context__, ValueError):  # it names the tensors, or the dictionary
            raise CheckpointError(f"{failed[1]}: {error.__context__}") from None
        raise
    finally:
        current_trainer.reset(token)


def _end_of(trainer: Any, patience: int, validations: int) -> str:
    """Says why there is nothing to train; empty if there is."""
    if 0 < patience <= validations:
        text = f"there were {validations} validations in a row without a better one: nothing to train (--patience "
        return f"{text}{patience}; a larger one resumes, and --reset-meters counts anew)"
    if 0 < trainer.cfg.optimization.max_update <= (updates := trainer.get_num_updates()):
        return f"the checkpoint has {updates} updates: nothing to train (--max-update)"
    return ""


def _patience_of(extra_state: Any, epoch_itr: Any) -> Any:
    """Returns what `best.save_state` has saved; None if there is nothing, or if the validation data are others."""
    position = (extra_state or {}).get("train_iterator", {}).get("position") or {}
    valid_data = getattr(epoch_itr, "valid_data", None)
    same_data = position.get("valid", valid_data) == valid_data
    return extra_state.get(best.PATIENCE) if extra_state and same_data else None


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
            logger.warning(f"{last} {problem}: resumes from {path}, after update {updates}")
            return str(path)
    if checkpoints_in(folder):
        raise CheckpointError(f"{last} {problem}, and no other is whole: copy one there, or choose another --save-dir")
    return None


def _lock(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _locks.append(file := open_as_it_is(folder / "training.lock"))
    except ValueError as error:
        raise CheckpointError(f"--save-dir {folder}: {error}") from None
    file.seek(0)
    holder = HOLDER.fullmatch(file.read(1000))
    try:
        lock(file, folder, function=fcntl.lockf)
    except BlockingIOError:
        name = f" ({holder[0]})" if holder else ""
        raise CheckpointError(
            f"--save-dir {folder}: another training{name} writes its checkpoints there; choose another --save-dir, or "
            "wait for its end"
        ) from None
    if holder:  # else it is a file of the user
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
    for path in checkpoints_in(folder):
        with contextlib.suppress(OSError, ValueError):
            readable.append((_updates_in(path), path))
    return sorted(readable, reverse=True)


def checkpoints_in(folder: Path) -> list[Path]:
    """Lists the files that a training names as its checkpoints."""
    return [path for path in folder.glob("*.pt") if CHECKPOINT_NAME.fullmatch(path.name)]


def _updates_in(path: Path) -> int:
    with named_failures(str(path)):
        state = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)
        return int(state["optimizer_history"][-1]["num_updates"])


def load_checkpoint_to_cpu(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint; CheckpointError if a training is restored from it with another of the settings `SAME`.

    Also if its model has settings that models no longer have, and for one that `--encoder-from` names and that is more
    than an encoder: its decoder would not be new.
    """
    state, trainer = checkpoints.load(original, path, *args, **kwargs), current_trainer.get()
    is_start = trainer is not None and path == getattr(trainer.cfg.model, "encoder_from", None)
    if is_start and not any(".sentence_encoder." in name for name in state["model"]):
        raise CheckpointError(
            f"--encoder-from {path} is no BERT or RoBERTa; to start from all its weights: --finetune-from-model"
        )
    settings = state.get("cfg") or {}
    saved = settings.get("model")
    if trainer is not None and not is_start and path != trainer.cfg.checkpoint.finetune_from_model:
        _check_resumable(path, state, trainer)
        trainer.saved_settings = settings
    if trainer is None or saved is None:  # converted weights have no settings
        return state
    model = trainer.get_model()
    current = getattr(model, "config", trainer.cfg.model)
    saved_class = ARCH_MODEL_REGISTRY.get(getattr(saved, "_name", None))
    family = None
    if hasattr(saved_class, "read_config"):
        try:
            family = saved_class.read_config(copy.copy(saved)).encoder_family  # in today's words
        except ValueError as error:
            raise CheckpointError(f"{path}: {error}") from None
    for name in SAME:
        before, now = getattr(saved, name, None), getattr(current, name, None)
        before = family if name == "encoder_family" else before
        if before is None and saved_class is type(model):  # it records flags that the user or the architecture set
            before = getattr(type(current), name, None)
        if before is not None and now is not None and str(before) != str(now):
            raise CheckpointError(
                f"{path}: trained with --{name.replace('_', '-')} {before}, and this run has {now}: its weights would "
                "compute another function"
            )
    return state


def _check_resumable(path: str, state: dict[str, Any], trainer: Any) -> None:
    """Raises CheckpointError for a checkpoint without the state of the optimizer, or with other labels."""
    if trainer.cfg.checkpoint.reset_optimizer:
        return
    way_out = "--finetune-from-model with another --save-dir begins a new training from its weights"
    if state.get("last_optimizer_state") is None:
        raise CheckpointError(
            f"{path}: it has no state of the optimizer (as with --no-save-optimizer-state) to resume; {way_out}"
        )
    own = trainer.get_model().state_dict()
    for name, before in state["model"].items():
        is_fingerprint = name.endswith(LABELS_FINGERPRINT) and name in own
        if is_fingerprint and not torch.equal(before.cpu(), own[name].cpu()):
            data = trainer.cfg.task.data
            raise CheckpointError(f"{path}: it has other labels, or in another order, than {data}; {way_out}")
