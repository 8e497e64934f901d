"""The figure that chooses the best checkpoint: its direction and its name are checked.

A resumed training also goes on counting for `--patience`; fairseq begins to count anew.

A resumed training compares with the best figure of its checkpoint only if the metric, what defines it, and the
validation data are the same.
"""

import logging
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fairseq.checkpoint_utils

from .trust import CheckpointError

logger = logging.getLogger(__name__)
SMALLER = re.compile(r"(.*_)?(loss|ppl|bpc)")  # the whole name of a figure
LARGER = re.compile(r"accuracy|precision|recall|f1|rouge|bleu|exact", re.IGNORECASE)  # a part of it
PATIENCE = "patience"  # in the extra state of a checkpoint
METRIC, MAXIMIZE = "--best-checkpoint-metric", "--maximize-best-checkpoint-metric"
_figures: list[Mapping[str, Any]] = []  # those of the last validation


def check_direction(settings: Any) -> None:
    """Raises ValueError if the worst checkpoint would be kept as the best."""
    metric = settings.best_checkpoint_metric
    if SMALLER.fullmatch(metric):
        if settings.maximize_best_checkpoint_metric:
            raise ValueError(f"{METRIC} {metric}: a smaller one is better, so remove {MAXIMIZE}")
    elif LARGER.search(metric) and not settings.maximize_best_checkpoint_metric:
        raise ValueError(f"{METRIC} {metric}: a larger one is better, so add {MAXIMIZE}")


def get_valid_stats(original: Callable[..., Any], cfg: Any, trainer: Any, stats: dict[str, Any], *args: Any) -> Any:
    """Remembers the figures of a validation."""
    _figures[:] = [stats]
    return original(cfg, trainer, stats, *args)


def unknown_figure(error: KeyError, settings: Any) -> CheckpointError | None:
    """Returns the error to raise instead if the metric is none of the figures of the last validation."""
    metric = settings.best_checkpoint_metric
    if error.args != (metric,) or not _figures or metric in _figures[0]:
        return None
    names = ", ".join(sorted(name for name in _figures[0] if LARGER.search(name) or SMALLER.fullmatch(name)))
    return CheckpointError(
        f"{METRIC} {metric}: the validation has no such figure, but {names}; with one of these the same command resumes"
    )


def _early_stopping() -> Iterator[Any]:
    """Yields fairseq's function that counts for `--patience`, in its attributes; torchrun runs it as a script."""
    for module in (sys.modules.get("fairseq_cli.train"), sys.modules["__main__"]):
        if (function := getattr(module, "should_stop_early", None)) is not None:
            yield function


def save_state(original: Callable[..., Any], trainer: Any, filename: str, extra_state: dict[str, Any]) -> Any:
    """Saves with a checkpoint what `should_stop_early` counts for `--patience`, as fairseq should."""
    settings = trainer.cfg.checkpoint
    for function in _early_stopping():
        if settings.patience > 0 and hasattr(function, "best"):
            counted = {"best": function.best, "validations": function.num_runs}
            extra_state = extra_state | {PATIENCE: counted}
    return original(trainer, filename, extra_state)


def restore_patience(state: Mapping[str, Any] | None) -> int:
    """Restores what `save_state` has saved, and returns the number of validations; None begins to count."""
    for function in _early_stopping():
        vars(function).pop("best", None)  # of another training in this process
        if state is not None:
            function.best, function.num_runs = state["best"], state["validations"]
    return 0 if state is None else int(state["validations"])


def forget(reason: str) -> None:
    """Forgets the best figure of the checkpoint."""
    if hasattr(save := fairseq.checkpoint_utils.save_checkpoint, "best"):
        del save.best
        logger.info("%s, so checkpoint_best.pt is chosen among the new checkpoints alone", reason)


def is_same_figure(saved: Mapping[str, Any], settings: Any) -> bool:
    """Returns whether the best figure is still one of the same definition; forgets it otherwise.

    Args:
        saved: the settings of the checkpoint, by sections.
        settings: those of the training.
    """
    before, now = _definition(saved), _definition(settings)
    changed = [name for name in before.keys() & now.keys() if before[name] != now[name]]
    for name in sorted(changed)[:1]:
        forget(f"--{name.replace('_', '-')} is {now[name]}, and was {before[name]} in the checkpoint")
    return not changed


def _definition(settings: Mapping[str, Any]) -> dict[str, str]:
    """Returns what defines the figures of a validation: the metric, the criterion, and how texts are generated."""
    sections = (settings[name] for name in ("checkpoint", "criterion", "task"))
    chosen, criterion, task = (vars(each) if isinstance(each, Namespace) else dict(each) for each in sections)
    names = {name: chosen[name] for name in chosen if name.endswith("best_checkpoint_metric")}
    generated = {name: task[name] for name in task if name.startswith("eval_")}
    return {name: str(value) for name, value in {**names, **generated, **criterion}.items() if name != "_name"}
