"""Corrections of fairseq's faults: `apply()` replaces functions of fairseq, for every task of the process.

`docs/fairseq_faults.md` lists the symptoms. For a plain fault the docstring of its correction has the patch of fairseq
that would make it needless.
"""

import functools
from collections.abc import Callable
from typing import Any

import fairseq.data.data_utils
import fairseq.data.indexed_dataset
import fairseq.distributed.utils
import fairseq.file_utils
import fairseq.options
import torch.utils.data._utils.signal_handling
from fairseq import checkpoint_utils
from fairseq.data.iterators import EpochBatchIterator
from fairseq.file_io import PathManager
from fairseq.logging import progress_bar
from fairseq.optim import FairseqOptimizer
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.trainer import Trainer

from . import best, checkpoints, data, launching, log, optimizer, position, resuming, settings, signals, trust

#: Module or class, its function, and what is called instead, with the replaced function as the first argument. What a
#: function does before and after the replaced one is written in it; no function of fairseq is replaced twice.
#: `signals.watch` replaces one more, `validate_and_save` of fairseq_cli.train, when a training begins.
REPLACED: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    # settings, before anything is built
    (fairseq.options, "parse_args_and_arch", settings.parse_args_and_arch),
    (fairseq.distributed.utils, "call_main", launching.call_main),
    # reading a checkpoint, from the outermost call to the innermost
    (checkpoint_utils, "load_checkpoint", resuming.load_checkpoint),
    (checkpoint_utils, "load_model_ensemble_and_task", checkpoints.load_model_ensemble_and_task),
    (checkpoint_utils, "load_checkpoint_to_cpu", resuming.load_checkpoint_to_cpu),
    (checkpoint_utils, "_upgrade_state_dict", trust.upgrade_state_dict),
    (PathManager, "isfile", checkpoints.is_file_or_folder),
    (fairseq.file_utils, "load_archive_file", trust.load_archive_file),
    # writing one
    (checkpoint_utils, "verify_checkpoint_directory", checkpoints.verify_directory),
    (Trainer, "save_checkpoint", best.save_state),
    (checkpoint_utils, "torch_persistent_save", checkpoints.save),
    (PathManager, "copy", checkpoints.copy),
    # data, and the place of a training in them
    (fairseq.data.indexed_dataset, "dataset_exists", data.dataset_exists),
    (fairseq.data.indexed_dataset, "make_dataset", data.make_dataset),
    (fairseq.data.data_utils, "batch_by_size", data.batch_by_size),
    (EpochBatchIterator, "ordered_batches", data.ordered_batches),
    (Trainer, "get_train_iterator", position.get_train_iterator),
    (Trainer, "get_valid_iterator", data.get_valid_iterator),
    (EpochBatchIterator, "state_dict", position.state_dict),
    (EpochBatchIterator, "load_state_dict", position.load_state_dict),
    (torch.utils.data._utils.signal_handling, "_set_worker_signal_handlers", signals.set_worker_signal_handlers),
    # training
    (AMPOptimizer, "__init__", settings.build_amp),
    (FP16Optimizer, "state_dict", optimizer.state_dict),
    (FP16Optimizer, "load_state_dict", optimizer.load_half_precision),
    (FairseqOptimizer, "load_state_dict", optimizer.load_state_dict),
    (Trainer, "train_step", data.train_step),
    (FairseqTask, "train_step", settings.train_step),
    (Trainer, "valid_step", signals.valid_step),
    (progress_bar, "progress_bar", log.make_progress_bar),
)


@functools.cache
def apply() -> None:
    """Installs all corrections; a second call does nothing. A program that calls this keeps its own tracebacks."""
    trust.allow_checkpoint_types()
    data.give_numpy_compat()
    log.shorten()
    for owner, name, function in REPLACED:
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(_with_original(function, original)))


def _with_original(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    # A plain function binds as a method, a partial does not.
    return lambda *args, **kwargs: function(original, *args, **kwargs)
