"""Checkpoint files: replaced atomically, and read as `trust.py` says.

A folder of `hat export` is read like a checkpoint.
"""

import argparse
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import fairseq.checkpoint_utils
import torch
from fairseq.dataclass.utils import overwrite_args_by_name
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ..data.dictionary import LABELS_FINGERPRINT, fingerprint_of_labels
from ..data.files import Fields, is_deeper
from ..data.outputs import atomic_file, folder_with_manifest
from ..model_folder import ModelFolder, bare_checkpoint, is_model_folder
from .trust import CheckpointError, check_file, named_failures, without_training

MAX_LEVELS = 20  # of the settings in a folder


def copy(original: Callable[..., Any], src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """Copies to another file and renames that, as `PathManager.copy` should: `dst_path` is whole at every moment."""
    if not overwrite and os.path.exists(dst_path):
        raise FileExistsError(dst_path)
    with open(src_path, "rb") as source, _replacing(dst_path) as file:
        shutil.copyfileobj(source, file, 1 << 20)
    return True


def verify_directory(original: Callable[[str], None], save_dir: str) -> None:
    """Refuses a folder of a model or of data, which would no longer be what its manifest says."""
    if (folder := folder_with_manifest(Path(save_dir, "checkpoint"))) is not None:
        raise CheckpointError(f"--save-dir {save_dir} is in {folder}, which hat has written; name a folder elsewhere")
    original(save_dir)


def save(original: Callable[..., Any], obj: Any, filename: str, async_write: bool = False) -> None:
    """Saves once, as `torch_persistent_save` should; a failure leaves the older file and names the path."""
    with _replacing(filename) as file:
        torch.save(obj, file)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when it is whole and on the disk; CheckpointError if it cannot."""
    try:
        with atomic_file(path) as file:
            yield file
    except (OSError, RuntimeError) as error:
        cause = str(error if isinstance(error, OSError) else error.__context__ or error).splitlines()[0]
        raise CheckpointError(f"{path} could not be written ({cause}); a checkpoint there is as before") from None


def load(original: Callable[..., Any], path: str, arg_overrides: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint, or a folder of a model; CheckpointError if it is not whole, or could run code."""
    with named_failures(path):
        try:
            if is_model_folder(path):
                state = _load_folder(ModelFolder.open(path), arg_overrides)
            else:
                check_file(path)
                state = original(path, arg_overrides, *args, **kwargs)
            return without_training(state, arg_overrides or {})
        except (CheckpointError, OmegaConfBaseException) as error:
            raise CheckpointError(f"{path}: {str(error).splitlines()[0]}") from None


def load_model_ensemble_and_task(original: Callable[..., Any], filenames: Any, *args: Any, **kwargs: Any) -> Any:
    """Builds the models of checkpoints, with one line where none can be built."""
    with named_failures(os.pathsep.join(filenames)):
        return original(filenames, *args, **kwargs)


def is_file_or_folder(original: Callable[[str], bool], path: str) -> bool:
    """Accepts a folder, too; fairseq's `Trainer.load_checkpoint` should raise for it, and trains from scratch."""
    return original(path) or os.path.isdir(path)


def _load_folder(folder: ModelFolder, arg_overrides: Any) -> Any:
    cfg = OmegaConf.create(_settings_of(folder), flags={"allow_objects": True})
    overwrite_args_by_name(cfg, arg_overrides or {})
    updates = folder.origin.get("updates", int)
    return fairseq.checkpoint_utils._upgrade_state_dict(bare_checkpoint(_tensors_of(folder), cfg, updates))


def _tensors_of(folder: ModelFolder) -> dict[str, Any]:
    """Returns the tensors; if transformers gave the labels another order, the fingerprint of the head is of that."""
    tensors, trained = folder.tensors(), folder.trained_labels()
    labels = folder.labels(trained)
    if any(label in trained and label != own for label, own in zip(labels, trained, strict=False)):
        words = torch.tensor(fingerprint_of_labels(labels))
        tensors |= dict.fromkeys((name for name in tensors if name.endswith(LABELS_FINGERPRINT)), words)
    return tensors


def _settings_of(folder: ModelFolder) -> dict[str, Any]:
    """Returns the settings of the training as its checkpoint has them, apart from the data."""
    config = folder.origin
    if not config.record:
        raise CheckpointError("the model was trained by transformers: it has no settings of a training by fairseq")
    cfg = Fields(config.get("cfg", dict), f"{config.where}: cfg", ("task", "model", "criterion"))
    if is_deeper(cfg.record, MAX_LEVELS):
        raise config.error(f"its settings have more than {MAX_LEVELS} levels")
    sections = {name: cfg.get(name, dict) for name in cfg.record}
    sections.setdefault("task", {})["data"] = str(folder.data)
    namespaces = sections.keys() & config.texts("namespaces")
    return sections | {name: argparse.Namespace(**sections[name]) for name in namespaces}
