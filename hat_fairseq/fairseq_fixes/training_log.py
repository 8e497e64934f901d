"""A short log of a training.

fairseq logs every setting in one line, the modules of the model, and how it makes batches, before the first update.
`LOGLEVEL=DEBUG` shows them. Warnings and errors stay, but those of `WARNINGS`, which no user of fairseq can act on.
"""

import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable
from typing import Any

from fairseq.logging import progress_bar
from omegaconf import DictConfig
from torch import nn

from .replace import replaces

#: Where fairseq and Hydra use what a library calls old, and pinned memory, which fairseq asks for on a CPU, too.
WARNINGS = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\n'config' is validated against ConfigStore schema with the same name",
    r"\nThe strict flag in the compose API is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.autocast\(args\.\.\.\)` is deprecated",
)
#: How lines begin that tell nothing of this training, by logger.
HIDDEN = {
    "fairseq_cli.train": r"num\. expert model params: 0 ",
    "fairseq.tasks.fairseq_task": r"can_reuse_epoch_itr|reuse_dataloader|rebuild_batches|batches will be|creating new",
    "fairseq.data.data_utils": r"loaded .*\.(source-target|role-None)\.",  # the task says how many there are
    "fairseq.data.iterators": "grouped total_num_itrs",
    "fairseq.trainer": "detected shared parameter",
}


def make_quiet() -> None:
    """Hides the warnings above and, unless `LOGLEVEL` is DEBUG, the lines; fairseq resets the levels of loggers."""
    for message in WARNINGS:
        warnings.filterwarnings("ignore", message)
    for name in HIDDEN if os.environ.get("LOGLEVEL", "").upper() != "DEBUG" else ():
        logging.getLogger(name).addFilter(is_shown)


def is_shown(record: logging.LogRecord) -> bool:
    """Whether a record is shown; that of all settings becomes the command."""
    if record.levelno > logging.INFO:
        return True
    if isinstance(record.msg, DictConfig):
        record.msg = f"settings: {shlex.join(sys.argv[1:])}"
    return not (isinstance(record.msg, nn.Module) or re.match(HIDDEN[record.name], str(record.msg)))


@replaces(progress_bar, "progress_bar")
def make_progress_bar(original: Callable[..., Any], *args: Any, log_file: str | None = None, **kwargs: Any) -> Any:
    """Opens `--log-file` once; in fairseq each epoch opens it again, and a line is written as often."""
    is_open = any(isinstance(handler, logging.FileHandler) for handler in progress_bar.logger.handlers)
    return original(*args, log_file=None if is_open else log_file, **kwargs)
