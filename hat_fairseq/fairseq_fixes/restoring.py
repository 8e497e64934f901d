"""Refuses to resume a training with tensors or settings that do not fit, or with an unknown metric, and names them.

In fairseq a checkpoint loads without an error if, for example, the number of attention heads has changed.
"""

import contextvars
import copy
import logging
import re
import sys
from collections.abc import Callable
from typing import Any

import fairseq.checkpoint_utils
import fairseq.distributed.utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.logging import metrics
from fairseq.models import ARCH_MODEL_REGISTRY

from ..data.package import is_package
from . import save_dir, signals
from .checkpoints import CheckpointError
from .replace import replaces

logger = logging.getLogger(__name__)

SAME = (  # settings that change the function of a model and no shape
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_normalize_before",
    "decoder_normalize_before",
    "activation_fn",
    "no_scale_embedding",
    "pooling_cells",
)
# the trainer whose checkpoint is being read
restoring: contextvars.ContextVar[Any] = contextvars.ContextVar("restoring", default=None)


@replaces(fairseq.checkpoint_utils, "load_checkpoint")
def load_checkpoint(original: Callable[..., Any], cfg: Any, trainer: Any, **kwargs: Any) -> Any:
    """Restores a training; in fairseq a `--restore-file` that does not exist trains from scratch.

    Raises:
        CheckpointError: `--restore-file` does not exist, or does not fit; then the tensors or the dictionary are named.
        ValueError: no validation logs `--best-checkpoint-metric`.
        SystemExit: it already has `--max-update` updates.
    """
    if cfg.restore_file != "checkpoint_last.pt" and not PathManager.exists(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file} does not exist")
    if is_package(cfg.restore_file):
        raise CheckpointError(f"--restore-file {cfg.restore_file}: a package has no optimizer state to go on with")
    signals.watch()
    if (instead := _agreed(cfg, trainer)) is not None:
        cfg = copy.deepcopy(cfg)
        cfg.restore_file, cfg.finetune_from_model = instead, None
    token = restoring.set(trainer)
    try:
        restored = original(cfg, trainer, **kwargs)
    except Exception as error:
        # fairseq replaces every error by a guess; the original error names the tensors or the dictionary.
        failed = re.match(r"Cannot load model parameters from checkpoint (.*?);", str(error))
        if failed and isinstance(error.__context__, ValueError):
            raise CheckpointError(f"{failed.group(1)}: {error.__context__}") from None
        if str(error).startswith("--finetune-from-model"):
            raise CheckpointError(
                f"{error}: download it, convert it with `hat import`, or remove the flag to begin with random weights"
            ) from None
        if differ := re.match(r"(Criterion|Optimizer) does not match; .*\. (\w+) vs (\w+)", str(error)):
            flag, before, now = differ.groups()
            raise CheckpointError(
                f"the checkpoint was trained with {before}, and this run has {now}: give the --{flag.lower()} of that "
                "training to go on with it, or --reset-optimizer"
            ) from None
        raise
    finally:
        restoring.reset(token)
    max_update = trainer.cfg.optimization.max_update
    if 0 < max_update <= trainer.get_num_updates():
        logger.info(f"the checkpoint has {trainer.get_num_updates()} updates: nothing to train (--max-update)")
        sys.exit(0)  # fairseq would train one more
    check_metric(trainer)
    return restored


def _agreed(cfg: Any, trainer: Any) -> str | None:
    """Gives all processes the result of `save_dir.prepare`, which the first process calls."""
    found: list[str | None] = [None, None]
    if trainer.is_data_parallel_master:
        try:
            found = [save_dir.prepare(cfg, trainer), None]
        except CheckpointError as problem:
            found = [None, str(problem)]
    if trainer.data_parallel_world_size > 1:
        found = distributed_utils.broadcast_object(found, 0, trainer.data_parallel_process_group, trainer.device)
    if found[1] is not None:
        raise CheckpointError(found[1])
    return found[0]


@replaces(fairseq.checkpoint_utils, "load_checkpoint_to_cpu")
def check_same_function(original: Callable[..., Any], path: str, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint; where it is restored, compares its settings with the model's, if both have them.

    Raises:
        CheckpointError: they differ; with the flag.
    """
    state, trainer = original(path, *args, **kwargs), restoring.get()
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


def check_metric(trainer: Any) -> None:
    """Validates one batch and looks for `--best-checkpoint-metric`, which fairseq misses after the first validation.

    Raises:
        ValueError: the metric is not there; with the metrics that are.
    """
    dataset, name = trainer.cfg.dataset, trainer.cfg.checkpoint.best_checkpoint_metric
    if name == "loss" or dataset.disable_validation:  # every criterion logs the loss
        return
    iterator = trainer.get_valid_iterator(dataset.valid_subset.split(",")[0])
    batches = iterator.next_epoch_itr(shuffle=False, set_dataset_epoch=False)
    trainer.begin_valid_epoch(1)
    with metrics.aggregate(new_root=True) as aggregator:
        trainer.valid_step(next(iter(batches)))
    logged = aggregator.get_smoothed_values()
    if name not in logged:
        known = ", ".join(sorted(key for key in logged if not key.startswith("_")))
        raise ValueError(f"--best-checkpoint-metric {name}: a validation of this run logs {known}")
