"""Checkpoints: what may be in them, one line for a bad one, and copies that are never half a file."""

from __future__ import annotations

import argparse
import collections
import contextvars
import os
import pickle
import re
import shutil
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairseq.checkpoint_utils
import fairseq.distributed.utils as distributed_utils
import fairseq.file_utils
import numpy as np
import omegaconf
import torch
from fairseq.file_io import PathManager

from .checkpoint_file import CheckpointError, check_file
from .replace import replace
from .same_function import check_same_function
from .settings_of_checkpoint import check_settings
from .validation_metric import check_metric

# the trainer whose checkpoint is being read
_restoring: contextvars.ContextVar[Any] = contextvars.ContextVar("restoring", default=None)


def apply() -> None:
    """Installs the corrections of this file."""
    allow_checkpoint_types()
    PathManager.copy = staticmethod(atomic_copy)
    replace(fairseq.checkpoint_utils, "_upgrade_state_dict", upgrade_state_dict)
    replace(fairseq.checkpoint_utils, "load_checkpoint_to_cpu", load_checkpoint_to_cpu)
    replace(fairseq.checkpoint_utils, "load_checkpoint", load_checkpoint)
    replace(fairseq.file_utils, "load_archive_file", load_archive_file)


def allow_checkpoint_types() -> None:
    """Lets `torch.load(weights_only=True)` read what fairseq's checkpoints hold, all of it plain data."""
    nodes = omegaconf.nodes
    dtypes = {type(np.dtype(code)) for code in "?bhilBHILefd"}
    torch.serialization.add_safe_globals(
        [
            argparse.Namespace,
            collections.defaultdict,
            dict,
            list,
            int,
            float,
            str,
            bool,
            typing.Any,
            distributed_utils._TensorPlaceholder,  # a checkpoint on its way from the first process to the others
            omegaconf.DictConfig,
            omegaconf.ListConfig,
            omegaconf.base.ContainerMetadata,
            omegaconf.base.Metadata,
            *(getattr(nodes, name) for name in dir(nodes) if name.endswith("Node")),
            np.ndarray,
            np.dtype,
            np._core.multiarray._reconstruct,  # type: ignore[attr-defined]
            np._core.multiarray.scalar,  # type: ignore[attr-defined]
            *dtypes,
        ]
    )


def atomic_copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """Copies a file so that `dst_path` is at every moment either the old file or the whole new one."""
    if not overwrite and os.path.exists(dst_path):
        raise FileExistsError(dst_path)
    partial = f"{dst_path}.tmp"
    shutil.copyfile(src_path, partial)
    with open(partial, "rb+") as handle:
        os.fsync(handle.fileno())
    os.replace(partial, dst_path)
    return True


def load_checkpoint_to_cpu(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint.

    Raises:
        CheckpointError: it holds more than plain data, names parts that it may not build, is not whole, or was trained
            as another function than the model that it is restored into.
    """
    try:
        check_file(path)
        state = original(path, *args, **kwargs)
        if (trainer := _restoring.get()) is not None:
            check_same_function(state, trainer)
        return state
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except pickle.UnpicklingError as error:
        culprit = re.search(r"GLOBAL (\S+)", str(error))
        what = culprit.group(1) if culprit else "no checkpoint of torch"
        raise CheckpointError(
            f"{path}: refused, because it holds more than tensors and settings ({what}): loading it could run code"
        ) from None
    except (EOFError, OSError, RuntimeError) as error:
        if isinstance(error, FileNotFoundError) or (
            isinstance(error, RuntimeError) and "PytorchStreamReader" not in str(error)
        ):
            raise
        raise CheckpointError(f"{path}: not a complete checkpoint ({Path(path).stat().st_size} bytes)") from None


def upgrade_state_dict(original: Callable[..., Any], state: Any) -> Any:
    """What fairseq does with each checkpoint as soon as its file has been read, after the check of its settings."""
    check_settings(state)
    return original(state)


def load_archive_file(original: Callable[..., Any], archive_file: str) -> str:
    """The folder of a model for `from_pretrained`; fairseq also unpacks archives, outside of their folder too.

    Raises:
        CheckpointError: not a folder.
    """
    if not os.path.isdir(archive_file):
        raise CheckpointError(
            f"{archive_file} is not a folder: unpack an archive yourself and give the folder of model.pt"
        )
    return archive_file


def load_checkpoint(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Restores a training.

    Raises:
        CheckpointError: `--restore-file` does not exist, or does not fit; then the tensors or the dictionary are named.
        ValueError: no validation logs `--best-checkpoint-metric`.
    """
    if cfg.restore_file != "checkpoint_last.pt" and not PathManager.exists(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file} does not exist")
    token = _restoring.set(trainer)
    try:
        restored = original(cfg, trainer, **kwargs)
    except Exception as error:
        # fairseq replaces every error by a guess; the original error names the tensors or the dictionary.
        failed = re.match(r"Cannot load model parameters from checkpoint (.*?);", str(error))
        if failed and isinstance(error.__context__, ValueError):
            raise CheckpointError(f"{failed.group(1)}: {error.__context__}") from None
        raise
    finally:
        _restoring.reset(token)
    check_metric(trainer)
    return restored
