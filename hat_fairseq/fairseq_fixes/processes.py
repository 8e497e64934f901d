"""The processes of a run: their number and precision are checked before it starts, and signals end it well.

In fairseq a run takes the number of processes that torchrun or Slurm has started; with another number than planned,
every update has another size.

SIGTERM, SIGHUP, Ctrl-C, and what batch systems send before a time limit or a preemption, SIGUSR1, SIGUSR2 and SIGXCPU,
end a training after the current update, with a checkpoint for exact resumption. All processes of a run agree after each
update, so a signal to one of them is enough. A running validation is finished, but the checkpoint is written before
that. A second signal stops the process at once. The exit status is 128 + the number of the signal. What the process
ignores at its start, as SIGHUP under nohup, stays ignored.
"""

import atexit
import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fairseq.checkpoint_utils
import fairseq.distributed.utils as distributed_utils
import torch
import torch.multiprocessing
from torch import distributed

from . import settings

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SLURM = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")
_FLAG = "distributed-world-size"
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
SECOND_AFTER = 1.0  # seconds: launchers and terminals repeat a signal; what comes sooner counts as the same
_asked: list[tuple[int, float]] = []  # the first signal, once it has come, and when
_save: list[Callable[[], None]] = []  # writes the checkpoint of the update whose validation is running


def started_processes(environment: Mapping[str, str], port: int, gpus: int) -> tuple[str, int] | None:
    """Returns the launcher and its number of processes; None when fairseq starts them on this machine.

    Without `port`, --distributed-port, fairseq does not ask Slurm. A single task on a node stands for all its `gpus`.
    """
    if all(name in environment for name in _TORCHRUN):
        return "torchrun", int(environment["WORLD_SIZE"])
    if port > 0 and any(name in environment for name in _SLURM):
        nodes = int(environment["SLURM_NNODES"])
        tasks = int(environment.get("SLURM_NTASKS_PER_NODE") or int(environment["SLURM_NTASKS"]) // nodes)
        return "Slurm", nodes * (tasks if tasks > 1 else gpus)
    return None


def check_world_size(asked: int, explicit: bool, started: tuple[str, int] | None, gpus: int) -> None:
    """Raises ValueError for another number of processes than a run is meant for.

    `asked` is --distributed-world-size; if not `explicit`, it is fairseq's default, the number of GPUs.
    """
    if started is not None and explicit and started[1] != asked:
        launcher, number = started
        raise ValueError(
            f"{launcher} has started {number} process{'es' * (number > 1)} and the run is for {asked}: start {asked}, "
            f"or say --{_FLAG} {number} (of a recipe: --gpus {number})"
        )
    if started is None and asked > max(gpus, 1):
        raise ValueError(
            f"the run is for {asked} GPUs and this machine has {gpus or 'none'}, or --cpu was given: --{_FLAG} "
            f"{gpus or 1} (of a recipe: --gpus {gpus or 1}), or start {asked} processes by torchrun or Slurm"
        )


def call_main(original: Callable[..., Any], cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
    """fairseq's `call_main` after the checks; a run that fails one ends with one line."""
    training = cfg.distributed_training
    if cfg.common.log_file:
        Path(cfg.common.log_file).parent.mkdir(parents=True, exist_ok=True)
    gpus = 0 if cfg.common.cpu else torch.cuda.device_count()
    if cfg.model is not None:  # a training
        settings.adapt(cfg, on_cpu=not gpus)
    started = started_processes(os.environ, training.distributed_port if gpus else 0, gpus)
    explicit = any(_FLAG in word.replace("_", "-") for word in sys.argv)
    if cfg.common.cpu and started is None and not explicit:
        training.distributed_world_size = 1  # fairseq's default is the number of GPUs
    asked = training.distributed_world_size
    if training.distributed_init_method is None:
        check_world_size(asked, explicit, started, gpus)
    starts = started is None and asked > 1 and not training.distributed_no_spawn
    if started is not None:
        # fairseq's default is the number of GPUs here; where that is 1 it would not look for torchrun or Slurm
        training.distributed_world_size = started[1]
    if not gpus and training.distributed_world_size > 1:
        training.distributed_backend = "gloo"
        if training.ddp_backend in ("pytorch_ddp", "c10d"):
            training.ddp_backend = "legacy_ddp"  # fairseq gives torch's DDP a device number, which a CPU does not have
        if started is not None and training.distributed_init_method is None:
            training.distributed_init_method = "env://"
            training.distributed_rank, training.distributed_no_spawn = int(os.environ["RANK"]), True
    with passing_on() if starts else contextlib.nullcontext():
        return original(cfg, functools.partial(_main_in_process, main), **kwargs)


def _main_in_process(main: Callable[..., Any], cfg: Any, **kwargs: Any) -> Any:
    """`main` in each process, where its GPU is known; a process that fails leaves its group to the launcher."""
    common = cfg.common
    in_bf16 = torch.cuda.is_available() and not common.cpu and (common.bf16 or common.memory_efficient_bf16)
    if in_bf16 and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ValueError("--bf16: this GPU has no bfloat16; use --fp16 (of a recipe: --bf16=null --fp16)")
    atexit.register(_destroy_process_group)
    try:
        return main(cfg, **kwargs)
    except Exception:
        atexit.unregister(_destroy_process_group)
        raise


def _destroy_process_group() -> None:
    """Ends the threads of the process group; those that run when Python ends can abort the process, status 134."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
        vars(distributed_utils.get_global_group).clear()  # fairseq keeps a group of its own there


def _agreed_signal() -> int:
    """The signal that one of the processes of the run has got, or 0; all of them have to call this."""
    number = _asked[0][0] if _asked else 0
    if not distributed.is_initialized():
        return number
    on_gpu = distributed.get_backend() == "nccl"
    numbers = torch.tensor(number, device="cuda" if on_gpu else "cpu")
    return int(distributed_utils.all_reduce(numbers, distributed_utils.get_global_group(), "max"))


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


def _record(signum: int, frame: object) -> None:
    if not _asked:
        _asked.append((signum, time.monotonic()))
    elif time.monotonic() - _asked[0][1] > SECOND_AFTER:
        os._exit(128 + signum)


def validate_and_save(original: Any, cfg: Any, trainer: Any, task: Any, epoch_itr: Any, *args: Any) -> Any:
    """Wraps fairseq's validation after an update; ends the process if a signal has come, unless training is over."""
    saved = False

    def save() -> None:
        nonlocal saved
        if not saved and _agreed_signal():
            fairseq.checkpoint_utils.save_checkpoint(cfg.checkpoint, trainer, epoch_itr, None)
            saved = True

    save()
    _save[:] = [save]
    losses, should_stop = original(cfg, trainer, task, epoch_itr, *args)
    save()
    _save.clear()
    if saved and not should_stop:
        _end(cfg.checkpoint, trainer, _agreed_signal())  # no process leaves before the file is written
    return losses, should_stop


def valid_step(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Writes the checkpoint before the next batch of a validation if a signal has come."""
    for save in _save:
        save()
    return original(self, *args, **kwargs)


def _end(settings: Any, trainer: Any, signum: int) -> None:
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


def set_worker_signal_handlers(original: Callable[..., Any], *args: Any) -> None:
    """Lets only its parent end a process that loads data: Slurm and terminals send signals to all processes.

    Under fairseq's own start of several processes this needs a dataset of the plugin, because others do not import it.
    """
    original(*args)
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
