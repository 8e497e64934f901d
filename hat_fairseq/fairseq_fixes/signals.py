"""SIGTERM, SIGHUP, SIGUSR1 and Ctrl-C end a training after the current update, with a checkpoint for exact resumption.

All processes of a run agree after each update, so a signal to one of them is enough. A running validation is finished,
but the checkpoint is written before that. A second signal stops the process at once. The exit status is 128 + the
number of the signal: 143, 129, 138, 130. What the process ignores at its start, as SIGHUP under nohup, stays ignored.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import fairseq.checkpoint_utils
import fairseq.distributed.utils as distributed_utils
import torch.distributed
import torch.multiprocessing
import torch.utils.data._utils.signal_handling as signals_of_workers
from fairseq.trainer import Trainer

from .replace import replaces

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT)
# Launchers and terminals send the same signal to several processes, and pass it on: what comes this soon is no second.
SECOND_AFTER = 1.0  # seconds
_asked: list[int] = []  # the first signal, once it has come
_save: list[Callable[[], None]] = []  # writes the checkpoint of the update whose validation is running


def largest(number: int = 0) -> int:
    """The largest of the numbers of all processes of the run; all of them have to call this."""
    if not torch.distributed.is_initialized():
        return number
    on_gpu = torch.distributed.get_backend() == "nccl"
    numbers = torch.tensor(number, device="cuda" if on_gpu else "cpu")
    return int(distributed_utils.all_reduce(numbers, distributed_utils.get_global_group(), "max"))


def heeded() -> list[int]:
    """Those of `SIGNALS` that the process does not ignore; nohup has it ignore SIGHUP."""
    return [signum for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]


def watch() -> None:
    """Records signals from now on; the thread hears them also while the process waits for another one."""
    if threading.current_thread() is not threading.main_thread():
        return
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for signum in heeded():
        signal.signal(signum, lambda *_: None)
    threading.Thread(target=_listen, args=(read,), daemon=True).start()
    for name in ("fairseq_cli.train", "__main__"):  # torchrun runs the module as a script
        original = getattr(sys.modules.get(name), "validate_and_save", None)
        if original is not None:
            wrapper = functools.partial(validate_and_save, original)
            sys.modules[name].validate_and_save = wrapper  # type: ignore[attr-defined]


def _listen(read: int) -> None:
    first = 0.0
    while received := os.read(read, 1):
        if received[0] not in SIGNALS:
            continue
        if not _asked:
            first = time.monotonic()
            _asked.append(received[0])
        elif time.monotonic() - first > SECOND_AFTER:
            os._exit(128 + received[0])


def validate_and_save(original: Any, cfg: Any, trainer: Any, task: Any, epoch_itr: Any, *args: Any) -> Any:
    """What fairseq does after an update; ends the process if a signal has come, unless the training is at its end."""
    saved = False

    def save() -> None:
        nonlocal saved
        if not saved and largest(*_asked):
            fairseq.checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
            saved = True

    save()
    _save[:] = [save]
    losses, should_stop = original(cfg, trainer, task, epoch_itr, *args)
    save()
    _save.clear()
    if saved and not should_stop:
        largest()  # no process leaves before the file is written: its launcher would stop the others
        _end(cfg.checkpoint, trainer)
    return losses, should_stop


@replaces(Trainer, "valid_step")
def valid_step(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """A batch of a validation; a signal has the checkpoint written before the other batches."""
    for save in _save:
        save()
    return original(self, *args, **kwargs)


def _end(settings: Any, trainer: Any) -> None:
    signum = largest(*_asked)
    for each in SIGNALS:  # fairseq ends the other processes as soon as one has left
        signal.signal(each, signal.SIG_IGN)
    how = "" if settings.restore_file == "checkpoint_last.pt" else "without --restore-file and --reset-* "
    outcome = f"which is in {settings.save_dir}; the same command {how}goes on"
    if settings.no_save or settings.no_last_checkpoints:
        outcome = "without a checkpoint to go on from (--no-save or --no-last-checkpoints)"
    if trainer.is_data_parallel_master:
        name = signal.Signals(signum).name
        print(f"hat_fairseq: {name}: stopped after update {trainer.get_num_updates()}, {outcome}", file=sys.stderr)
    sys.exit(128 + signum)


@replaces(signals_of_workers, "_set_worker_signal_handlers")
def set_worker_signal_handlers(original: Callable[..., Any], *args: Any) -> None:
    """In a process that loads data: only its parent ends it.

    Slurm and terminals send their signals to all processes, and a training could not finish its update. Under
    fairseq's own start of several processes this needs a dataset of the plugin, because others do not import it.
    """
    original(*args)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    threading.Thread(target=_obey_parent, daemon=True).start()


def _obey_parent() -> None:
    while signal.sigwaitinfo(SIGNALS).si_pid != os.getppid():
        pass
    os._exit(0)


@contextlib.contextmanager
def passing_on() -> Iterator[None]:
    """While fairseq waits for the processes that it has started: they get the signals, and their exit status counts."""

    def pass_on(signum: int, frame: object) -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signum)

    previous = {signum: signal.signal(signum, pass_on) for signum in heeded()}
    try:
        yield
    except torch.multiprocessing.ProcessExitedException as error:
        signum = -error.exit_code if error.exit_code < 0 else error.exit_code - 128
        if signum not in SIGNALS:
            raise
        sys.exit(128 + signum)
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
