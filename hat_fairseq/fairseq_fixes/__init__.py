"""Corrections of fairseq's faults: `apply()` replaces functions of fairseq, for every task of the process.

`docs/troubleshooting.md` lists the symptoms.
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
from fairseq.hub_utils import GeneratorHubInterface
from fairseq.logging import progress_bar
from fairseq.models.bart.hub_interface import BARTHubInterface
from fairseq.models.ema.ema import EMA
from fairseq.models.roberta.hub_interface import RobertaHubInterface
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.trainer import Trainer

from . import averages, batches, checkpoints, options, processes, restoring, training

#: Module or class, its function, and what is called instead, with the replaced function as the first argument. What a
#: function does before and after the replaced one is written in it; no function of fairseq is replaced twice.
#: `processes.watch` replaces one more, `validate_and_save` of fairseq_cli.train, when a training begins.
REPLACED: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    # options, before anything is built
    (fairseq.options, "parse_args_and_arch", options.parse_args_and_arch),
    (fairseq.distributed.utils, "call_main", processes.call_main),
    # reading a checkpoint, from the outermost call to the innermost
    (checkpoint_utils, "load_checkpoint", restoring.load_checkpoint),
    (checkpoint_utils, "load_model_ensemble_and_task", checkpoints.load_model_ensemble_and_task),
    (checkpoint_utils, "load_checkpoint_to_cpu", restoring.load_checkpoint_to_cpu),
    (checkpoint_utils, "load_ema_from_checkpoint", averages.load),
    (checkpoint_utils, "_upgrade_state_dict", options.upgrade_state_dict),
    (PathManager, "isfile", checkpoints.is_file_or_folder),
    (fairseq.file_utils, "load_archive_file", checkpoints.load_archive_file),
    # writing one
    (checkpoint_utils, "torch_persistent_save", checkpoints.save),
    (PathManager, "copy", checkpoints.copy),
    # data, and the place of a training in them
    (fairseq.data.indexed_dataset, "dataset_exists", training.dataset_exists),
    (fairseq.data.indexed_dataset, "make_dataset", training.make_dataset),
    (fairseq.data.data_utils, "batch_by_size", batches.batch_by_size),
    (EpochBatchIterator, "ordered_batches", batches.ordered_batches),
    (Trainer, "get_train_iterator", restoring.get_train_iterator),
    (EpochBatchIterator, "state_dict", restoring.state_dict),
    (EpochBatchIterator, "load_state_dict", restoring.load_state_dict),
    (torch.utils.data._utils.signal_handling, "_set_worker_signal_handlers", processes.set_worker_signal_handlers),
    # training
    (Trainer, "train_step", training.train_step),
    (EMA, "_step_internal", averages.update),
    (Trainer, "valid_step", processes.valid_step),
    (progress_bar, "progress_bar", training.make_progress_bar),
    # generation
    (NGramRepeatBlock, "_no_repeat_ngram", options.no_repeat_ngram),
    *(
        (interface, name, options.refuse_text)
        for interface in (GeneratorHubInterface, BARTHubInterface, RobertaHubInterface)
        for name in ("encode", "decode")
    ),
)


@functools.cache
def apply() -> None:
    """Installs all corrections; a second call does nothing."""
    checkpoints.show_own_errors_in_one_line()
    checkpoints.allow_checkpoint_types()
    training.give_numpy_compat()
    training.shorten_log()
    for owner, name, function in REPLACED:
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(_with_original(function, original)))


def _with_original(function: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(original, *args, **kwargs)  # as a method, too; a partial is none
