"""NaN and infinity in training: one message with the update, the sample ids and the last finite checkpoint.

fairseq runs the update again under its `NanDetector`. The detector's backward hooks fail at modules that do not return
tensors, such as encoders, and their error hides the cause.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq.nan_detector import NanDetector

from .replace import replaces

SHOWN_IDS = 50


@replaces(NanDetector, "add_hooks")
def add_hooks(original: Callable[..., Any], self: Any, module: torch.nn.Module) -> None:
    """Watches the forward pass of every module, and the backward pass of modules without children."""
    backward, self.backward = self.backward, self.backward and not list(module.children())
    original(self, module)
    self.backward = backward


@contextlib.contextmanager
def explained(trainer: Any, samples: list[Any]) -> Iterator[None]:
    """Around an update.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale).
    """
    try:
        yield
    except Exception as error:
        cause = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(cause, FloatingPointError):
            raise
        path = last_finite(Path(trainer.cfg.checkpoint.save_dir))
        ids = [str(number) for sample in samples if sample and "id" in sample for number in sample["id"].tolist()]
        more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
        raise FloatingPointError(
            f"update {trainer.get_num_updates() + 1}: {cause}; sample ids {', '.join(ids[:SHOWN_IDS])}{more}; "
            f"the last checkpoint with finite weights: {path or 'none'}. Try a lower --lr, more --warmup-updates or "
            "--clip-norm 1"
        ) from None


def last_finite(save_dir: Path) -> Path | None:
    """The newest checkpoint in a `--save-dir` whose weights are all finite."""
    paths = save_dir.glob("checkpoint*.pt")
    for path in sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            weights = torch.load(path, map_location="cpu", mmap=True, weights_only=True)["model"]
        except (OSError, RuntimeError, KeyError, EOFError, pickle.UnpicklingError):
            continue
        if all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            return path
    return None
