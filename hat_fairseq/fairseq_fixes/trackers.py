"""Reports a tracker whose package is missing once; fairseq warns for every progress bar."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

from fairseq.logging import progress_bar

from .replace import replaces

TRACKERS = {"tensorboard_logdir": "SummaryWriter", "wandb_project": "wandb"}  # what fairseq found of each, or None

logger = logging.getLogger(__name__)


@replaces(progress_bar, "progress_bar")
def without_missing_trackers(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A progress bar without the trackers that are not installed."""
    for name in [name for name in TRACKERS if kwargs.get(name) and getattr(progress_bar, TRACKERS[name]) is None]:
        _report_missing(name)
        del kwargs[name]
    return original(*args, **kwargs)


@cache
def _report_missing(name: str) -> None:
    flag, package = f"--{name.replace('_', '-')}", name.partition("_")[0]
    logger.warning("%s has no effect: %s is not installed; pip install 'hat_fairseq[track]'", flag, package)
