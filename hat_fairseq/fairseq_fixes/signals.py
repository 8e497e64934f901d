"""Signals end a training with a checkpoint, from which the same command resumes.

SIGTERM, SIGHUP, Ctrl-C, and what batch systems send before a time limit or a preemption, SIGUSR1, SIGUSR2 and SIGXCPU,
end a training after the current update, with a checkpoint for exact resumption. All processes of a run agree after each
update, so a signal to one of them is enough. A running validation is finished, but the checkpoint is written before
that. A second signal stops the process at once, and so does the first one where no batch of data comes. The exit status
is 128 + the number of the signal. What the process ignores at its start, as SIGHUP under nohup, stays ignored.
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
import torch
import torch.multiprocessing
from torch import distributed

from . import best, loading

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
RESETS = ("reset_dataloader", "reset_lr_scheduler", "reset_meters", "reset_optimizer")
SECOND_AFTER = 1.0  # seconds: launchers and terminals repeat a signal; what comes sooner counts as the same
LONGEST_WAIT = 5.0  # seconds, for a batch after a signal: Docker and others kill a process after 10
_asked: list[tuple[int, float]] = []  # [(signal, time)] of the first signal, else empty
_last_use = [0.0]  # when a batch was used for an update or a validation
_save: list[Callable[[], None]] = []  # writes the checkpoint of the update whose validation is running


def _agreed_signal() -> int:
    """The signal that one of the processes of the run has got, or 0; all of them have to call this."""
    number = _asked[0][0] if _asked else 0
    if not distributed.is_initialized():
        return number
    on_gpu = distributed.get_backend() == "nccl"
    signum = torch.tensor(number, device="cuda" if on_gpu else "cpu")
    return int(distributed_utils.all_reduce(signum, distributed_utils.get_global_group(), "max"))


def _heeded() -> list[int]:
    """Those of `SIGNALS` that the process does not ignore; nohup has it ignore SIGHUP."""
    return [signum for signum in SIGNALS if signal.getsignal(signum) is not signal.SIG_IGN]


def watch() -> None:
    """Records signals from now on, and has `validate_and_save` look at them."""
    if threading.current_thread() is not threading.main_thread():
        return
    for signum in _heeded():
        signal.signal(signum, _record)
    for module in (sys.modules.get("fairseq_cli.train"), sys.modules["__main__"]):  # torchrun runs it as a script
        if (original := getattr(module, "validate_and_save", None)) is not None:
            module.validate_and_save = functools.partial(validate_and_save, original)  # type: ignore[union-attr]
            module.get_valid_stats = functools.partial(best.get_valid_stats, module.get_valid_stats)  # type: ignore[union-attr]


def _record(signum: int, frame: object) -> None:
    if not _asked:
        _asked.append((signum, time.monotonic()))
        timer = threading.Timer(LONGEST_WAIT, _end_without_batch)
        timer.daemon = True
        timer.start()
    elif time.monotonic() - _asked[0][1] > SECOND_AFTER:
        os._exit(128 + signum)


def _end_without_batch() -> None:
    """Ends the process if it has waited for a batch since the signal: no update comes that it could end after."""
    signum, begin = _asked[0]
    if _last_use[0] < begin and loading.main_thread_waits():
        print(
            f"hat_fairseq: {signal.Signals(signum).name}: stopped, because no batch of data came for "
            f"{LONGEST_WAIT:g} seconds; the checkpoints are of earlier updates",
            file=sys.stderr,
            flush=True,
        )
        os._exit(128 + signum)


def validate_and_save(original: Any, cfg: Any, trainer: Any, task: Any, epoch_itr: Any, *args: Any) -> Any:
    """Wraps fairseq's validation after an update; ends the process if a signal has come, unless training is over.

    CheckpointError, after a checkpoint is written, if `--best-checkpoint-metric` names no figure of the validation.
    """
    _last_use[:], saved = [time.monotonic()], False

    def save() -> None:
        nonlocal saved
        if not saved and _agreed_signal():
            fairseq.checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
            saved = True

    save()
    _save[:] = [save]
    try:
        losses, should_stop = original(cfg, trainer, task, epoch_itr, *args)
    except KeyError as error:
        if (problem := best.unknown_figure(error, cfg.checkpoint)) is None:
            raise
        if not saved:
            fairseq.checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
        raise problem from None
    if saved and losses[0] is not None and cfg.checkpoint.patience > 0:  # which has counted since it was written
        fairseq.checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
    save()
    _save.clear()
    if saved and not should_stop:
        _end(cfg.checkpoint, trainer, _agreed_signal())  # no process leaves before the file is written
    return losses, should_stop


def valid_step(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Writes the checkpoint before the next batch of a validation if a signal has come."""
    _last_use[:] = [time.monotonic()]
    for save in _save:
        save()
    return original(self, *args, **kwargs)


def _end(settings: Any, trainer: Any, signum: int) -> None:
    for each in SIGNALS:  # fairseq ends the other processes as soon as one has left
        signal.signal(each, signal.SIG_IGN)
    is_other = settings.restore_file != "checkpoint_last.pt" or any(settings[flag] for flag in RESETS)
    how = "without --restore-file and --reset-* " if is_other else ""
    outcome = f"which is in {settings.save_dir}; the same command {how}resumes"
    if settings.no_save or settings.no_last_checkpoints:
        outcome = "without a checkpoint to resume from (--no-save or --no-last-checkpoints)"
    if trainer.is_data_parallel_master:
        name = signal.Signals(signum).name
        print(f"hat_fairseq: {name}: stopped after update {trainer.get_num_updates()}, {outcome}", file=sys.stderr)
    sys.exit(128 + signum)


def set_worker_signal_handlers(original: Callable[..., Any], *args: Any) -> None:
    """Lets only its parent end a process that loads data: Slurm and terminals send signals to all processes.

    Under fairseq's own start of several processes this needs a dataset of the plugin, because others do not import it.
    """
    original(*args)
    loading.report_unsent_batches()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    threading.Thread(target=_obey_parent, daemon=True).start()


def _obey_parent() -> None:
    while signal.sigwaitinfo(SIGNALS).si_pid != os.getppid():
        pass
    os._exit(0)


@contextlib.contextmanager
def passing_on() -> Iterator[None]:
    """Passes signals on to the processes that fairseq has started, and takes over their exit status."""

    def pass_on(signum: int, frame: object) -> None:
        for child in multiprocessing.active_children():
            os.kill(child.pid or 0, signum)

    previous = {signum: signal.signal(signum, pass_on) for signum in _heeded()}
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
