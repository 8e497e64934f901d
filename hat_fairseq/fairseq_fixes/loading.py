"""Processes that load data: a training whose batches do not come ends with one line.

In Python a batch that a process cannot send is printed and lost, and the training waits for it for ever. That happens
where /dev/shm is small, as in a container, or too few files may be open.
"""

import sys
import threading
from multiprocessing import queues, synchronize
from traceback import extract_tb
from types import FrameType, TracebackType
from typing import Any, NoReturn

import fairseq.data.iterators
from torch._utils import ExceptionWrapper

WAY_OUT = "--num-workers 0 loads data without other processes"

LARGER = "docker run --shm-size 1g"


class NotSent(ExceptionWrapper):
    """Takes the place of a batch; the process that waits for the batch raises the error."""

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def reraise(self) -> NoReturn:
        raise ValueError(self.problem)


def report_unsent_batches() -> None:
    """Has this process, which loads data, send the error in place of a batch that it cannot send."""
    queues.Queue._on_queue_feeder_error = _send_problem  # type: ignore[attr-defined]


def _send_problem(queue: Any, error: Exception, item: Any) -> None:
    number, *_ = item  # of the batch
    queue.put((number, NotSent(problem_of(error))))


def problem_of(error: Exception) -> str:
    """Says why a batch was not sent, and the way out."""
    text = " ".join(str(error).split())
    if "shared memory" in text:
        return f"/dev/shm is too small for a batch ({text}): {WAY_OUT}; for a container, {LARGER}"
    return f"a process that loads data could not send a batch ({type(error).__name__}: {text}): {WAY_OUT}"


def problem_of_process(error: BaseException, trace: TracebackType | None) -> str:
    """Says why a process that loads data could not start, or has ended; empty for another error."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and trace and extract_tb(trace)[-1].filename == synchronize.__file__:
        return f"/dev/shm is too small for the processes that load data ({text}): {WAY_OUT}; for a container, {LARGER}"
    is_ended = isinstance(error, RuntimeError) and text.startswith("DataLoader worker")
    return f"{text.split('. ')[0].rstrip('.')}: {WAY_OUT}" if is_ended else ""


def main_thread_waits() -> bool:
    """Returns whether the main thread runs the code of an iterator over batches now."""
    frame: FrameType | None = sys._current_frames()[threading.main_thread().ident or 0]
    while frame is not None and frame.f_code.co_filename != fairseq.data.iterators.__file__:
        frame = frame.f_back
    return frame is not None
