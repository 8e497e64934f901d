"""Checkpoint files: refuses code and damage with one line, and replaces files atomically."""

import argparse
import collections
import contextlib
import functools
import os
import pickle
import re
import shutil
import sys
import types
import typing
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import fairseq.checkpoint_utils
import fairseq.distributed.utils as distributed_utils
import fairseq.file_utils
import numpy as np
import omegaconf
import torch
from fairseq.file_io import PathManager

from .replace import replaces

_PICKLE = b"\x80"  # the first byte of checkpoints of torch before 1.6, which have no checksums
_ZIP = b"PK"
PACKAGE = Path(__file__).resolve().parents[1]


class CheckpointError(ValueError):
    """A checkpoint that is missing, refused, or does not fit; the message says which and what to do."""


def show_own_errors_in_one_line() -> None:
    """A command of fairseq that ends with an error of this package about its input prints the message only.

    HAT_TRACEBACK=1 adds the traceback.
    """
    previous = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        if _is_about_input(error, trace) and not os.environ.get("HAT_TRACEBACK"):
            print(f"hat_fairseq: error: {error}", file=sys.stderr)
        else:
            previous(kind, error, trace)

    sys.excepthook = show


def _is_about_input(error: BaseException, trace: types.TracebackType | None) -> bool:
    """Whether this package has raised a ValueError, which stands for a mistake in what it was given."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_here = trace is not None and Path(trace.tb_frame.f_code.co_filename).is_relative_to(PACKAGE)
    return isinstance(error, CheckpointError) or (isinstance(error, ValueError | FileNotFoundError) and raised_here)


def allow_checkpoint_types() -> None:
    """Lets `torch.load(weights_only=True)` read what fairseq's checkpoints hold, all of it plain data."""
    plain = [argparse.Namespace, collections.defaultdict, dict, list, int, float, str, bool, typing.Any]
    sent = [distributed_utils._TensorPlaceholder]  # a checkpoint on its way from the first process to the others
    settings = [omegaconf.DictConfig, omegaconf.ListConfig, omegaconf.base.ContainerMetadata, omegaconf.base.Metadata]
    settings += [node for name, node in vars(omegaconf.nodes).items() if name.endswith("Node")]
    arrays: list[Any] = [np.ndarray, np.dtype, *{type(np.dtype(code)) for code in "?bhilBHILefd"}]
    numpy = np._core.multiarray  # type: ignore[attr-defined]
    torch.serialization.add_safe_globals([*plain, *sent, *settings, *arrays, numpy._reconstruct, numpy.scalar])


@replaces(PathManager, "copy")
def atomic_copy(original: Callable[..., Any], src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """Copies a file so that `dst_path` is at every moment either the old file or the whole new one."""
    if not overwrite and os.path.exists(dst_path):
        raise FileExistsError(dst_path)
    with open(src_path, "rb") as source, _replacing(dst_path) as file:
        shutil.copyfileobj(source, file, 1 << 20)
    return True


@replaces(fairseq.checkpoint_utils, "torch_persistent_save")
def torch_persistent_save(original: Callable[..., Any], obj: Any, filename: str, async_write: bool = False) -> None:
    """Saves a checkpoint; a failure leaves the older file and names the path."""
    if async_write or not PathManager.supports_rename(filename):
        return original(obj, filename, async_write)
    with _replacing(filename) as file:
        torch.save(obj, file)


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when it is whole and on the disk.

    Raises:
        CheckpointError: it could not be written; it is removed, and `path` is as before.
    """
    partial = f"{path}.tmp"
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except (OSError, RuntimeError) as error:
        Path(partial).unlink(missing_ok=True)
        cause = str(error if isinstance(error, OSError) else error.__context__ or error).splitlines()[0]
        raise CheckpointError(f"{path} could not be written ({cause}); a checkpoint there is as before") from None


@replaces(fairseq.checkpoint_utils, "load_checkpoint_to_cpu")
def load_checkpoint_to_cpu(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint; fairseq ends in pages of advice for one that cannot be read.

    Raises:
        CheckpointError: it holds more than plain data, names parts that it may not build, or is not whole.
    """
    try:
        check_file(path)
        return original(path, *args, **kwargs)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except pickle.UnpicklingError as error:
        culprit = re.search(r"GLOBAL (\S+)", str(error))
        what = culprit.group(1) if culprit else "no checkpoint of torch"
        raise CheckpointError(
            f"{path}: refused, because it holds more than tensors and settings ({what}): loading it could run code"
        ) from None
    except FileNotFoundError:
        raise
    except (EOFError, OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "PytorchStreamReader" not in str(error):
            raise CheckpointError(f"{path}: torch cannot read it: {' '.join(str(error).split()):.200}") from error
        raise CheckpointError(f"{path}: not a complete checkpoint ({Path(path).stat().st_size} bytes)") from None


@replaces(fairseq.checkpoint_utils, "load_model_ensemble_and_task")
def load_model_ensemble_and_task(original: Callable[..., Any], filenames: Any, *args: Any, **kwargs: Any) -> Any:
    """Builds the models of checkpoints, with one line where none can be built."""
    with named_failures(os.pathsep.join(filenames)):
        return original(filenames, *args, **kwargs)


@contextlib.contextmanager
def named_failures(path: str) -> Iterator[None]:
    """Raises CheckpointError for what fails because of the settings of a checkpoint, of which any may be wrong."""
    try:
        yield
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:
        cause = f"{type(error).__name__}: {' '.join(str(error).split()):.400}"
        raise CheckpointError(f"{path}: no model can be built from it ({cause})") from error


def check_file(path: str) -> None:
    """Checks what can be known of a checkpoint without loading it; a file that does not exist is left to the caller.

    `torch.save` writes a zip archive with a CRC-32 for each tensor, which `torch.load` does not compare: flipped bits
    load. Comparing them takes about half a second for a gigabyte.

    Raises:
        CheckpointError: it is not a file of `torch.save`, or its content has changed since it was written.
    """
    if Path(path).is_dir():
        raise CheckpointError("a directory; give the checkpoint in it")
    if not Path(path).is_file():
        return
    with open(path, "rb") as file:
        first = file.read(2)
    if first and not first.startswith((_PICKLE, _ZIP)):
        raise CheckpointError("not a checkpoint of torch, by its first bytes")
    status = os.stat(path)
    if damaged := _damage(str(path), status.st_size, status.st_mtime_ns):
        raise CheckpointError(f"damaged: {damaged}; use another checkpoint, or copy it again")


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


@replaces(fairseq.file_utils, "load_archive_file")
def load_archive_file(original: Callable[..., Any], archive_file: str) -> str:
    """The folder of a model for `from_pretrained`; fairseq also unpacks archives, outside of their folder, too.

    Raises:
        CheckpointError: not a folder.
    """
    if not os.path.isdir(archive_file):
        raise CheckpointError(
            f"{archive_file} is not a folder: unpack an archive yourself and give the folder of model.pt"
        )
    return archive_file
