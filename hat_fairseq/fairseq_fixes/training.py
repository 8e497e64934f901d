"""An update of a training: which batches count, and one message where it diverges.

fairseq runs an update with NaN or infinity again under its `NanDetector`. The detector's backward hooks fail at modules
that do not return tensors, such as encoders, and their error hides the cause.
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.nan_detector import NanDetector
from fairseq.trainer import Trainer

from .replace import replaces

SHOWN_IDS = 50


@replaces(Trainer, "train_step")
def train_step(original: Callable[..., Any], self: Any, samples: list[Any], *args: Any, **kwargs: Any) -> Any:
    """An update without the empty batches that fill up the last update of an epoch, unless there is no other batch.

    With several processes and `--update-freq`, fairseq's process that runs out of batches within an update does not
    count those that it had. Every task that is trained with the plugin gets the corrected gradients.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update,
            the sample ids and the last finite checkpoint.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    try:
        return original(self, samples, *args, **kwargs)
    except Exception as error:
        cause = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(cause, FloatingPointError):
            raise
        path = last_finite(Path(self.cfg.checkpoint.save_dir))
        ids = [str(number) for sample in samples if sample and "id" in sample for number in sample["id"].tolist()]
        more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
        raise FloatingPointError(
            f"update {self.get_num_updates() + 1}: {cause}; sample ids {', '.join(ids[:SHOWN_IDS])}{more}; "
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


@replaces(NanDetector, "add_hooks")
def add_hooks(original: Callable[..., Any], self: Any, module: torch.nn.Module) -> None:
    """Watches the forward pass of every module, and the backward pass of modules without children."""
    backward, self.backward = self.backward, self.backward and not list(module.children())
    original(self, module)
    self.backward = backward
