"""Checkpoint files: replaced atomically, and read only if they are whole and hold nothing but tensors and plain data.

A folder of `hat export` is read like a checkpoint. `--store-ema` adds the exponential moving average of the weights.
"""

import argparse
import collections
import contextlib
import functools
import os
import pickle
import re
import shutil
import typing
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import fairseq.checkpoint_utils
import fairseq.distributed.utils as distributed_utils
import numpy as np
import omegaconf
import torch
from fairseq.dataclass.utils import overwrite_args_by_name
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from ..data.dictionary import LABELS_FINGERPRINT, fingerprint_of_labels
from ..data.files import Fields, is_deeper
from ..data.outputs import atomic_file, folder_with_manifest
from ..model_folder import ModelFolder, bare_checkpoint, is_model_folder
from ..networks import NETWORKS

MAX_LEVELS = 20  # of the settings in a folder


class CheckpointError(ValueError):
    """A checkpoint that is missing, refused, or does not fit; the message says which and what to do."""


def allow_checkpoint_types() -> None:
    """Lets `torch.load(weights_only=True)` read what fairseq's checkpoints hold, all of it plain data."""
    plain = [argparse.Namespace, collections.defaultdict, dict, list, int, float, str, bool, typing.Any]
    sent = [distributed_utils._TensorPlaceholder]  # a checkpoint on its way from the first process to the others
    settings = [omegaconf.DictConfig, omegaconf.ListConfig, omegaconf.base.ContainerMetadata, omegaconf.base.Metadata]
    settings += [node for name, node in vars(omegaconf.nodes).items() if name.endswith("Node")]
    arrays: list[Any] = [np.ndarray, np.dtype, *{type(np.dtype(code)) for code in "?bhilBHILefd"}]
    numpy = np._core.multiarray  # type: ignore[attr-defined]
    torch.serialization.add_safe_globals([*plain, *sent, *settings, *arrays, numpy._reconstruct, numpy.scalar])


def copy(original: Callable[..., Any], src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """Copies a file so that `dst_path` is at every moment either the old file or the whole new one."""
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
    """Saves a checkpoint at once; a failure leaves the older file and names the path."""
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


def without_training(state: dict[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Removes settings of the training that name files which a model writes, unless the caller has `stated` them."""
    names = {name for network in NETWORKS.values() for name in getattr(network, "training_only", ())} - stated.keys()
    for settings in ((state.get("cfg") or {}).get("model"), state.get("args")):
        if isinstance(settings, argparse.Namespace):
            for name in names & vars(settings).keys():
                delattr(settings, name)
        elif isinstance(settings, DictConfig):
            with open_dict(settings):
                for name in names & settings.keys():
                    settings.pop(name)
    return state


def load_model_ensemble_and_task(original: Callable[..., Any], filenames: Any, *args: Any, **kwargs: Any) -> Any:
    """Builds the models of checkpoints, with one line where none can be built."""
    with named_failures(os.pathsep.join(filenames)):
        return original(filenames, *args, **kwargs)


@contextlib.contextmanager
def named_failures(path: str) -> Iterator[None]:
    """Raises CheckpointError for an error that the content of a checkpoint causes."""
    try:
        yield
    except pickle.UnpicklingError as error:
        culprit = re.search(r"GLOBAL (\S+)", str(error))
        if culprit is None:
            raise CheckpointError(f"{path}: not a checkpoint of torch") from None
        what = f"more than tensors and settings ({culprit[1]}): loading it could run code"
        raise CheckpointError(f"{path}: refused, because it holds {what}") from None
    except Exception as error:
        from_torch = isinstance(error, OSError) and error.errno is not None and error.filename is None
        if from_torch or isinstance(error, EOFError) or "PytorchStreamReader" in str(error):
            raise CheckpointError(f"{path}: not a complete checkpoint ({Path(path).stat().st_size} bytes)") from None
        if isinstance(error, OSError) and error.errno is None:  # as fairseq says that a file does not exist
            raise CheckpointError(str(error)) from None
        if isinstance(error, ValueError | OSError | MemoryError):
            raise
        cause = f"{type(error).__name__}: {' '.join(str(error).split()):.400}"
        raise CheckpointError(f"{path}: no model can be built from it ({cause})") from error


def check_file(path: str) -> None:
    """Checks what can be known of a checkpoint without loading it; a file that does not exist is left to the caller.

    `torch.save` writes a zip archive with a CRC-32 for each tensor, which `torch.load` does not compare: flipped bits
    load. Comparing them takes about half a second for a gigabyte. CheckpointError if they differ.
    """
    if Path(path).is_dir():
        is_data = any(Path(path).glob("*.ids")) or (Path(path) / "bin").is_dir()
        raise CheckpointError(
            "data of hat preprocess, no model" if is_data else "a directory; give the checkpoint in it"
        )
    if not Path(path).is_file():
        return
    status = os.stat(path)
    if damage := _damage(str(path), status.st_size, status.st_mtime_ns):
        raise CheckpointError(f"damaged: {damage}; use another checkpoint, or copy it again")


@functools.cache
def _damage(path: str, size: int, modified: int) -> str | None:
    """Describes the damage of a zip archive; a file is read once."""
    if not zipfile.is_zipfile(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            if any(part.compress_type for part in archive.infolist()):
                return "it is compressed, which torch.save does not do, and could unpack to fill the memory"
            part = archive.testzip()
            return part and f"wrong checksum of {part}"
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        return str(error)


def is_file_or_folder(original: Callable[[str], bool], path: str) -> bool:
    """Accepts a folder, too; in fairseq a folder as `--finetune-from-model` trains from scratch."""
    return original(path) or os.path.isdir(path)


def load_archive_file(original: Callable[..., Any], archive_file: str) -> str:
    """Returns the folder for `from_pretrained`; fairseq unpacks an archive, also outside of its folder."""
    if not os.path.isdir(archive_file):
        raise CheckpointError(
            f"{archive_file} is not a folder: unpack an archive yourself and give the folder of model.pt"
        )
    return archive_file


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


@torch.no_grad()
def update_averages(original: Callable[..., Any], self: Any, new_model: Any, updates: int | None = None) -> None:
    """Averages each weight once, and copies integers.

    In fairseq integers, such as fingerprints of dictionaries, end in an error, and weights that several modules share,
    such as embeddings, are averaged once for each of their names.
    """
    stored = self.model.state_dict()  # the tensors themselves
    averages = self.fp32_params if self.config.ema_fp32 else stored
    averaged, buffers = set[int](), dict(new_model.named_buffers())  # a buffer is copied, such as a threshold
    for name, weights in new_model.state_dict().items():
        average = averages[name]
        if not weights.is_floating_point() or name in self.skip_keys or name in buffers:
            average.copy_(weights)
        elif average.data_ptr() not in averaged:
            average.lerp_(weights.to(average.dtype), 1 - self.decay)
            averaged.add(average.data_ptr())
        stored[name].copy_(average)


def load_averages(original: Callable[..., Any], path: str) -> dict[str, Any]:
    """Loads a checkpoint with its averages as weights; CheckpointError if it has none."""
    state: dict[str, Any] = fairseq.checkpoint_utils.load_checkpoint_to_cpu(path)
    averages = (state.get("extra_state") or {}).get("ema")
    if averages is None:
        raise CheckpointError(f"{path} has no averages of weights: it was trained without --store-ema")
    return state | {"model": {name: x.float() if x.dtype == torch.float16 else x for name, x in averages.items()}}
