"""An update of a training: the batches in it, one message if it diverges, and the time that is left."""

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.logging import metrics
from fairseq.nan_detector import NanDetector
from fairseq.trainer import Trainer

from .replace import replaces
from .save_dir import newest_first

logger = logging.getLogger(__name__)
SHOWN_IDS = 50
_places: list[str] = []  # where the NanDetector has seen NaN or infinity in this update


@replaces(Trainer, "train_step")
def train_step(original: Callable[..., Any], self: Any, samples: list[Any], *args: Any, **kwargs: Any) -> Any:
    """An update without the empty batches that fill up the last update of an epoch, unless there is no other batch.

    In fairseq a process whose last batch of an update is empty drops the gradients of its earlier ones. If one of
    several processes runs out of memory, the run ends; in fairseq the others would wait, or count its samples.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update,
            the samples, the first module and the last finite checkpoint.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    first = vars(self).setdefault("first_update", (self.get_num_updates(), time.monotonic()))
    _places.clear()
    try:
        logged = original(self, samples, *args, **{"raise_oom": self.data_parallel_world_size > 1, **kwargs})
    except Exception as error:
        cause = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(cause, FloatingPointError):
            raise
        place = f", first in the {_places[0]}" if _places else ""
        path = last_finite(Path(self.cfg.checkpoint.save_dir))
        raise FloatingPointError(
            f"update {self.get_num_updates() + 1}: {cause}{place}; {_names(self, samples)}; the last checkpoint with "
            f"finite weights: {path or 'none'}. Try a lower --lr, more --warmup-updates or --clip-norm 1"
        ) from None
    if hasattr(self, "epoch_iterator"):
        log_minutes_left(self, *first)
    return logged


def log_minutes_left(trainer: Any, first: int, begin: float) -> None:
    """Logs the minutes until `--max-update` or `--max-epoch`, at the mean speed since update `first`."""
    settings, iterator, updates = trainer.cfg.optimization, trainer.epoch_iterator, trainer.get_num_updates()
    frequency = settings.update_freq[min(iterator.epoch, len(settings.update_freq)) - 1]
    batches = (settings.max_epoch - iterator.epoch + 1) * len(iterator) - iterator.iterations_in_epoch
    left = [settings.max_update - updates] * (settings.max_update > 0)
    left += [math.ceil(batches / frequency)] * (settings.max_epoch > 0)
    if left and updates > first:
        minutes = (time.monotonic() - begin) / (updates - first) * max(min(left), 0) / 60
        metrics.log_scalar("minutes_left", minutes, weight=0, priority=2000, round=1)  # weight 0: the last value


def _names(trainer: Any, samples: list[Any]) -> str:
    """The ids of samples, and of their documents where the data have a line with the id for each sample."""
    ids = [int(number) for sample in samples if sample and "id" in sample for number in sample["id"]]
    subset = trainer.cfg.dataset.train_subset
    names = [str(number) for number in ids[:SHOWN_IDS]]
    path = Path(str(getattr(trainer.cfg.task, "data", ""))) / f"{subset}.ids"
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) == len(trainer.task.dataset(subset)):
            names = [f"{number} ({lines[number].split(chr(9))[0]})" for number in ids[:SHOWN_IDS]]
    more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
    return f"sample ids {', '.join(names)}{more}"


def last_finite(save_dir: Path) -> Path | None:
    """The newest checkpoint in a `--save-dir` whose weights are all finite."""
    for _, path in newest_first(save_dir):
        weights = torch.load(path, map_location="cpu", weights_only=True)["model"]
        if all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            return path
    return None


@replaces(NanDetector, "_detect")
def detect(original: Callable[..., Any], self: Any, tensor: Any, name: str, backward: bool) -> str | None:
    """Describes an output of a module that is not finite, if there is one; the first is kept for the last message."""
    problem = original(self, tensor, name, backward)
    if problem is not None:
        _places.append(f"{'gradient' if backward else 'output'} of {name or 'the model'}")
    return problem


@replaces(NanDetector, "add_hooks")
def add_hooks(original: Callable[..., Any], self: Any, module: torch.nn.Module) -> None:
    """Watches outputs of every module, and gradients of modules without children.

    In fairseq the hooks of gradients fail at modules that return no tensors, such as encoders, and hide the cause.
    """
    backward, self.backward = self.backward, self.backward and not list(module.children())
    original(self, module)
    self.backward = backward
