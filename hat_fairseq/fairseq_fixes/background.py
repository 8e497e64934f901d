"""Ends fairseq's background threads, which prepare batches, before Python exits.

A daemon thread inside of PyTorch at exit aborts the process with "terminate called without an active exception" and
status 134 instead of the command's.
"""

import atexit
import contextlib
import queue
import threading
import time

from fairseq.data.iterators import BackgroundConsumer

LONGEST_WAIT = 30.0  # seconds, for a batch that never comes


def end_threads_at_exit() -> None:
    """Has Python wait for the batch that each of these threads is preparing."""
    atexit.register(_end_threads)


def _end_threads() -> None:
    threads = [thread for thread in threading.enumerate() if isinstance(thread, BackgroundConsumer)]
    for thread in threads:
        thread._max_len = 0  # its loop ends after the next batch
    give_up = time.monotonic() + LONGEST_WAIT
    for thread in threads:
        while thread.is_alive() and time.monotonic() < give_up:
            with contextlib.suppress(queue.Empty):  # a full queue would hold the thread
                thread._queue.get(timeout=0.05)
