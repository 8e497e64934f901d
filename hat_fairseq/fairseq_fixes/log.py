"""The log of a training, which is short, and errors, which are one line.

In fairseq the log begins with all settings in one line, the modules of the model, and how batches are made. Here it has
the command; `LOGLEVEL=DEBUG` shows the rest. Warnings and errors stay, but those of `WARNINGS`.
"""

import functools
import logging
import os
import re
import shlex
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairseq
from fairseq.logging import progress_bar
from hydra.errors import ConfigCompositionException
from omegaconf import DictConfig
from torch import nn

from .loading import problem_of_process
from .trust import CheckpointError

PACKAGE = Path(__file__).resolve().parents[1]
FAIRSEQ = Path(fairseq.__file__).resolve().parent
COMMANDS = FAIRSEQ.with_name("fairseq_cli")
REFUSALS = (ValueError, ImportError, AssertionError, FileNotFoundError)  # what fairseq raises for its input
OVERRIDE = re.compile(r"override \w+\.(\w+)=(\S*)")  # in an error of Hydra, a setting and its value
#: Warnings about old functions of libraries that fairseq and Hydra use, and about pinned memory on a CPU.
WARNINGS = (
    r"hydra\.experimental\.(initialize|compose)\(\) is no longer experimental",
    r"\nThe version_base parameter is not specified",
    r"In 'config': Usage of deprecated keyword in package header",
    r"\n'config' is validated against ConfigStore schema with the same name",
    r"\nThe strict flag in the compose API is deprecated",
    r"'pin_memory' argument is set as true but no accelerator is found",
    r"`torch\.cuda\.amp\.(autocast|GradScaler)\(args\.\.\.\)` is deprecated",
    r"CUDA is not available or torch_xla is imported\. Disabling autocast",
    r"torch\.cuda\.amp\.GradScaler is enabled, but CUDA is not available",
)
#: How lines begin that tell nothing of this training, by logger.
HIDDEN = {
    "fairseq_cli.train": r"num\. expert model params: 0 ",
    "fairseq.tasks.fairseq_task": r"can_reuse_epoch_itr|reuse_dataloader|rebuild_batches|batches will be|creating new",
    "fairseq.data.data_utils": r"loaded .*\.(source-target|role-None)\.",  # the task says how many there are
    "fairseq.data.iterators": "grouped total_num_itrs",
    "fairseq.trainer": "detected shared parameter",
    "hydra.core.utils": "Setting ",  # for whatever level is asked, in fairseq-validate
}


REFUSED: list[BaseException] = []  # errors for the user's input, which `hat train` ends with status 2


@functools.cache
def show_own_errors_in_one_line() -> None:
    """Has this process, a command of fairseq, print the message alone of an error for its input.

    That is a ValueError, an ImportError, as for a package that an option needs, an assertion with a message, or a file
    that the system refuses. HAT_TRACEBACK=1 adds the rest.
    """
    previous = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        is_own = isinstance(error, ValueError | FileNotFoundError) and _raised_in(PACKAGE, trace)
        is_of_file = isinstance(error, OSError) and error.filename is not None  # missing, read-only, a full disk
        is_known = is_own or isinstance(error, CheckpointError) or is_of_file
        if os.environ.get("HAT_TRACEBACK"):
            previous(kind, error, trace)
        elif is_known:
            REFUSED.append(error)
            print(f"hat_fairseq: error: {error}", file=sys.stderr)
        elif problem := problem_of_process(error, trace):
            print(f"hat_fairseq: error: {problem}", file=sys.stderr)
        elif isinstance(error, ConfigCompositionException) and (setting := OVERRIDE.search(str(error))):
            flag, value = f"--{setting[1].replace('_', '-')}", setting[2]
            REFUSED.append(error)
            problem = "is missing" if value == "null" else f"{value}: not a value of this flag"
            print(f"hat_fairseq: error: {flag} {problem}", file=sys.stderr)
        elif isinstance(error, REFUSALS) and _refused_by_fairseq(error, trace):
            REFUSED.append(error)
            print(f"fairseq: error: {' '.join(str(error).split())}", file=sys.stderr)
        else:
            previous(kind, error, trace)

    sys.excepthook = show


def _raised_in(folder: Path, trace: types.TracebackType | None) -> bool:
    return trace is not None and Path(traceback.extract_tb(trace)[-1].filename).is_relative_to(folder)


def _refused_by_fairseq(error: BaseException, trace: types.TracebackType | None) -> bool:
    """Whether a line of fairseq raises this error on purpose, and says why."""
    line = (traceback.extract_tb(trace)[-1].line or "") if trace else ""
    is_stated = line.startswith("raise ") or isinstance(error, AssertionError)  # whose condition can have more lines
    return bool(str(error)) and is_stated and any(_raised_in(folder, trace) for folder in (FAIRSEQ, COMMANDS))


def shorten() -> None:
    """Hides warnings and lines by filters: fairseq resets the levels of loggers."""
    for message in WARNINGS:
        warnings.filterwarnings("ignore", message)
    for name in HIDDEN:
        logging.getLogger(name).addFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    """Whether a record is shown, with `LOGLEVEL=DEBUG` each; that of all settings becomes the command."""
    if record.levelno > logging.INFO or os.environ.get("LOGLEVEL", "").upper() == "DEBUG":
        return True
    if isinstance(record.msg, DictConfig):
        record.msg = f"settings: {shlex.join(sys.argv[1:])}"
    return not (isinstance(record.msg, nn.Module) or re.match(HIDDEN[record.name], str(record.msg)))


def make_progress_bar(original: Callable[..., Any], *args: Any, log_file: str | None = None, **kwargs: Any) -> Any:
    """Opens `--log-file` once, as `progress_bar` should; each epoch opens it again, and writes lines again."""
    is_open = any(isinstance(handler, logging.FileHandler) for handler in progress_bar.logger.handlers)
    return original(*args, log_file=None if is_open else log_file, **kwargs)
