"""An update of a training: the batches in it, and the message if it diverges."""

import logging
from collections.abc import Callable
from typing import Any

from fairseq.logging import progress_bar

SHOWN_IDS = 50
#: Warnings about old functions of libraries that fairseq and Hydra use, and about pinned memory on a CPU.
WARNINGS = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\n'config' is validated against ConfigStore schema with the same name",
    r"\nThe strict flag in the compose API is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.autocast\(args\.\.\.\)` is deprecated",
)


def train_step(original: Callable[..., Any], self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
    """An update without the empty batches that fill up the last update of an epoch, unless there is no other batch.

    In fairseq a process whose last batch of an update is empty drops the gradients of its earlier ones. If one of
    several processes runs out of memory, the run ends; in fairseq the others would wait, or count its samples.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update
            and its samples. fairseq's error in its search for the module would hide it.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    try:
        return original(self, samples, raise_oom or self.data_parallel_world_size > 1)
    except Exception as error:
        cause = error if isinstance(error, FloatingPointError) else error.__context__
        if not isinstance(cause, FloatingPointError):
            raise
        ids = [str(int(number)) for sample in samples if sample and "id" in sample for number in sample["id"]]
        more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
        raise FloatingPointError(
            f"update {self.get_num_updates() + 1}: {cause}; sample ids {', '.join(ids[:SHOWN_IDS])}{more}; the "
            "checkpoints are of earlier updates. Try a lower --lr, more --warmup-updates or --clip-norm 1"
        ) from None


def make_progress_bar(original: Callable[..., Any], *args: Any, log_file: str | None = None, **kwargs: Any) -> Any:
    """Opens `--log-file` once; in fairseq each epoch opens it again, and a line is written as often."""
    is_open = any(isinstance(handler, logging.FileHandler) for handler in progress_bar.logger.handlers)
    return original(*args, log_file=None if is_open else log_file, **kwargs)
