"""fairseq's traps, each worked around once, when the plugin is imported.

allow_checkpoint_types   `torch.load` refuses fairseq's own checkpoints (Namespace, omegaconf, numpy in meters)
_load_checkpoint_to_cpu  a refused or unreadable checkpoint ends in pages of advice
_load_checkpoint         a mismatch ends in "please ensure that the architectures match"; a --restore-file that does not
                         exist trains from scratch
atomic_copy              `checkpoint_last.pt` is copied in place: a kill leaves half a file
_parse_args_and_arch     --bf16 means TPU
call_main                another number of processes than was asked for, bf16 on GPUs without it, several CPU processes:
                         in processes.py
_train_step              several processes with --update-freq: a process that runs out of batches within an update does
                         not count those that it had
_no_repeat_ngram         --no-repeat-ngram-size does nothing without the CUDA extension: it compares with padding
_get_buckets, apply      --num-batch-buckets asks numpy 2 for an argument and a module that it no longer has

Three more are settings of our task: batches that differ after a resume (`rebuild_batches`), masks that repeat in every
epoch (`reuse_dataloader`) and a last batch that is dropped (`get_batch_iterator`). One cannot happen in our attention:
a beam size that sticks to the model.
"""

from __future__ import annotations

import argparse
import collections
import functools
import os
import pickle
import re
import shutil
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import omegaconf
import torch

from .processes import call_main

_APPLIED = "_hat_fairseq"  # marks a replaced function, so that a second import replaces nothing


class CheckpointError(ValueError):
    """A checkpoint that is missing, refused, or does not fit; the message says which and what to do."""


def apply() -> None:
    """Installs all work-arounds; calling it again does nothing."""
    # fairseq is imported here and not above: with its import this function is called, and must be there.
    import fairseq.checkpoint_utils
    import fairseq.data.bucket_pad_length_dataset
    import fairseq.distributed.utils as distributed_utils
    import fairseq.options
    from fairseq.file_io import PathManager
    from fairseq.ngram_repeat_block import NGramRepeatBlock
    from fairseq.trainer import Trainer

    allow_checkpoint_types()
    if not hasattr(np, "compat"):
        np.compat = SimpleNamespace(long=int)  # type: ignore[attr-defined]
    PathManager.copy = staticmethod(atomic_copy)
    _replace(fairseq.data.bucket_pad_length_dataset, "get_buckets", _get_buckets)
    _replace(NGramRepeatBlock, "_no_repeat_ngram", _no_repeat_ngram)
    _replace(fairseq.options, "parse_args_and_arch", _parse_args_and_arch)
    _replace(distributed_utils, "call_main", call_main)
    _replace(fairseq.checkpoint_utils, "load_checkpoint_to_cpu", _load_checkpoint_to_cpu)
    _replace(fairseq.checkpoint_utils, "load_checkpoint", _load_checkpoint)
    _replace(Trainer, "train_step", _train_step)


def _replace(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(owner, name)
    if hasattr(original, _APPLIED):
        return

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(replacement, _APPLIED, True)
    setattr(owner, name, replacement)


def allow_checkpoint_types() -> None:
    """Lets `torch.load(weights_only=True)` read what fairseq's checkpoints hold, all of it plain data."""
    import fairseq.distributed.utils as distributed_utils

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


def _parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    parsed = original(parser, input_args=input_args, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if "--tpu" not in (sys.argv if input_args is None else input_args):
        args.tpu = False
    return parsed


def _load_checkpoint_to_cpu(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    try:
        return original(path, *args, **kwargs)
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


def _load_checkpoint(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    from fairseq.file_io import PathManager

    if cfg.restore_file != "checkpoint_last.pt" and not PathManager.exists(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file} does not exist")
    try:
        return original(cfg, trainer, **kwargs)
    except Exception as error:
        # fairseq replaces whatever went wrong by a guess; ours says which tensors, or which dictionary.
        failed = re.match(r"Cannot load model parameters from checkpoint (.*?);", str(error))
        if failed and isinstance(error.__context__, ValueError):
            raise CheckpointError(f"{failed.group(1)}: {error.__context__}") from None
        raise


def _train_step(original: Callable[..., Any], self: Any, samples: list[Any], *args: Any, **kwargs: Any) -> Any:
    # Empty batches fill up the last update of an epoch; only where there is no other has one to be run.
    return original(self, [sample for sample in samples if sample] or samples[:1], *args, **kwargs)


def _no_repeat_ngram(original: Callable[..., Any], self: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    step = kwargs["step"] if "step" in kwargs else args[3]  # after lprobs, bsz and beam_size
    return original(self, tokens[:, : step + 1], *args, **kwargs)


def _get_buckets(original: Callable[..., Any], sizes: np.ndarray, num_buckets: int) -> np.ndarray:
    edges = np.percentile(sizes, np.linspace(0, 100, num_buckets + 1), method="lower")
    return np.unique(edges[1:])
