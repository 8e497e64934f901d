"""An update of a training: the batches in it, and the message if it diverges."""

import time
from collections.abc import Callable
from typing import Any

from .log import log_minutes_left

SHOWN_IDS = 50


def train_step(original: Callable[..., Any], self: Any, samples: list[Any], raise_oom: bool = False) -> Any:
    """Makes an update without the empty batches that fill up the last one of an epoch, unless there is no other.

    In fairseq a process whose last batch of an update is empty drops the gradients of its earlier ones. If one of
    several processes runs out of memory, the run ends; in fairseq the others would wait, or count its samples.

    Raises:
        FloatingPointError: the loss or a gradient is NaN or infinite (in fp16: at every loss scale); with the update
            and its samples. fairseq's error in its search for the module would hide it.
    """
    samples = [sample for sample in samples if sample] or samples[:1]
    first = vars(self).setdefault("first_update", (self.get_num_updates(), time.monotonic()))
    try:
        logged = original(self, samples, raise_oom or self.data_parallel_world_size > 1)
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
    if hasattr(self, "epoch_iterator"):
        log_minutes_left(self, *first)
    return logged
