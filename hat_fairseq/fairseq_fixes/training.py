"""The batches of an update, and one message if it diverges or runs out of memory.

fairseq repeats an update with NaN or infinity under its `NanDetector`. The detector's backward hooks fail at modules
that do not return tensors, such as encoders, and their error hides the cause.
"""

import logging
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.logging import metrics
from fairseq.nan_detector import NanDetector
from fairseq.trainer import Trainer
from torch.nn.parallel import DistributedDataParallel

from .replace import replaces
from .save_dir import newest_first
from .signals import largest

logger = logging.getLogger(__name__)
SHOWN_IDS = 50
_places: list[str] = []  # where the NanDetector has found NaN or infinity in this update


class _Skipped(BaseException):
    """All processes leave an update, because one of them has run out of memory; fairseq's trainer catches others."""


@replaces(Trainer, "train_step")
def train_step(original: Callable[..., Any], self: Any, samples: list[Any], *args: Any, **kwargs: Any) -> Any:
    """An update without the empty batches that fill up the last update of an epoch, unless there is no other batch.

    With several processes and `--update-freq`, fairseq's process that runs out of batches within an update does not
    count those that it had. Every task that is trained with the plugin gets the corrected gradients.

    If a process runs out of memory, all of them skip the update. With torch's DistributedDataParallel this holds for
    the forward pass: a backward pass that ends in its middle ends the run.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update,
            the samples, the first module and the last finite checkpoint.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    active, counts = metrics._active_aggregators.copy(), metrics._active_aggregators_cnt.copy()
    outer = vars(self.task).pop("train_step", None)  # of the same update, which AMP tries again
    self.task.train_step = _skipping(self, samples, outer or self.task.train_step)
    _places.clear()
    try:
        return original(self, samples, *args, **kwargs)
    except _Skipped:
        for current, before in ((metrics._active_aggregators, active), (metrics._active_aggregators_cnt, counts)):
            current.clear()
            current.update(before)
        self.zero_grad()
        return None
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
    finally:
        del self.task.train_step
        if outer:
            self.task.train_step = outer


def _skipping(trainer: Any, samples: list[Any], step: Callable[..., Any]) -> Callable[..., Any]:
    """A task's `train_step` for an update; after its last batch all processes skip it if one of them lacks memory."""
    calls = failed = 0

    def train_step(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls, failed
        calls += 1
        result, is_last = None, calls == len(samples)
        try:
            result = step(*args, **kwargs)
        except RuntimeError as error:
            is_oom = isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)
            if not is_oom or calls > len(samples):
                raise
            _report(trainer, samples[calls - 1], str(error).splitlines()[0])
        if result is None:  # the error and what it held are gone
            failed, result = 1, (torch.zeros(()), 0, {})
            trainer.zero_grad()
            if trainer.cuda:
                torch.cuda.empty_cache()
            if is_last and type(getattr(trainer.model, "module", None)) is DistributedDataParallel:
                # whose backward pass waits for that of every process
                sample, _ = trainer._prepare_sample(trainer._dummy_batch)
                result = step(**{**kwargs, "sample": sample, "ignore_grad": True})
        if is_last and largest(failed):
            raise _Skipped
        return result

    return train_step


def _report(trainer: Any, sample: Any, error: str) -> None:
    trainer.skipped = getattr(trainer, "skipped", 0) + 1
    lengths, dataset = sample.get("net_input", {}).get("src_lengths"), trainer.cfg.dataset
    known = "" if lengths is None else f" with {lengths.tolist()[:SHOWN_IDS]} tokens"
    logger.warning(
        f"update {trainer.get_num_updates() + 1}: process {trainer.data_parallel_rank} is out of memory for "
        f"{_names(trainer, [sample])}{known} ({error}). All processes skip the update; so far this one has caused "
        f"{trainer.skipped}. Less memory: a lower --max-tokens ({dataset.max_tokens}) or --batch-size "
        f"({dataset.batch_size})"
    )


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
        weights = torch.load(path, map_location="cpu", mmap=zipfile.is_zipfile(path), weights_only=True)["model"]
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
    """Watches the forward pass of every module, and the backward pass of modules without children."""
    backward, self.backward = self.backward, self.backward and not list(module.children())
    original(self, module)
    self.backward = backward
