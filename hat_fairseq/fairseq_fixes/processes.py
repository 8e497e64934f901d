"""Checks the number of processes and the precision of a run before it starts.

With another number of processes than planned, every update has another size. fairseq takes the number that torchrun or
Slurm has started, or ends in an assertion.
"""

import contextlib
import functools
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fairseq.distributed.utils as distributed_utils
import torch

from .replace import replaces
from .signals import passing_on

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SLURM = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")
_FLAG = "distributed-world-size"


def started_processes(environment: Mapping[str, str], port: int, gpus: int) -> tuple[str, int] | None:
    """Who has started processes or will, and how many in all; None when fairseq starts them on this machine.

    Args:
        environment: variables of the process.
        port: --distributed-port; without it fairseq does not ask Slurm.
        gpus: of this machine; a single Slurm task on a node stands for as many.
    """
    if all(name in environment for name in _TORCHRUN):
        return "torchrun", int(environment["WORLD_SIZE"])
    if port > 0 and any(name in environment for name in _SLURM):
        nodes = int(environment["SLURM_NNODES"])
        tasks = int(environment.get("SLURM_NTASKS_PER_NODE") or int(environment["SLURM_NTASKS"]) // nodes)
        return "Slurm", nodes * (tasks if tasks > 1 else gpus)
    return None


def check_world_size(asked: int, explicit: bool, started: tuple[str, int] | None, gpus: int, on_cpu: bool) -> None:
    """Refuses a run with another number of processes than it is meant for.

    Args:
        asked: --distributed-world-size.
        explicit: it was given (and is not fairseq's default, the number of GPUs).
        started: see `started_processes`.
        gpus: of this machine.
        on_cpu: --cpu was given.

    Raises:
        ValueError: with the flag that helps.
    """
    if started is not None:
        launcher, number = started
        if explicit and number != asked:
            raise ValueError(
                f"{launcher} has started {number} process{'es' * (number > 1)} and the run is for {asked}: start "
                f"{asked}, or say --{_FLAG} {number} (of a recipe: --gpus {number})"
            )
    elif not on_cpu and asked > max(gpus, 1):
        raise ValueError(
            f"the run is for {asked} GPUs and this machine has {gpus or 'none'}: --{_FLAG} {gpus or 1} (of a recipe: "
            f"--gpus {gpus or 1}), or start it by torchrun or Slurm"
        )


def fit_precision(common: Any, has_bfloat16: bool) -> str | None:
    """Turns bf16 into fp16 in fairseq's common settings where there is no bfloat16; returns what to tell the user."""
    names = [name for name in ("bf16", "memory_efficient_bf16") if getattr(common, name) and not has_bfloat16]
    for name in names:
        setattr(common, name, False)
        setattr(common, name.replace("bf16", "fp16"), True)
    return f"--{names[0].replace('_', '-')}: this GPU has no bfloat16, so the run takes fp16" if names else None


@replaces(distributed_utils, "call_main")
def call_main(original: Callable[..., Any], cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
    """fairseq's `call_main` after the checks; a run that fails one ends with one line."""
    training = cfg.distributed_training
    if cfg.common.log_file:
        Path(cfg.common.log_file).parent.mkdir(parents=True, exist_ok=True)
    gpus, on_cpu = torch.cuda.device_count(), bool(cfg.common.cpu)
    on_gpus = gpus > 0 and not on_cpu
    started = started_processes(os.environ, training.distributed_port if on_gpus else 0, gpus)
    explicit = any(_FLAG in word.replace("_", "-") for word in sys.argv)
    if on_cpu and started is None and not explicit:
        training.distributed_world_size = 1  # fairseq's default is the number of GPUs
    asked = training.distributed_world_size
    try:
        if training.distributed_init_method is None and not cfg.common.tpu:
            check_world_size(asked, explicit, started, gpus, on_cpu)
        if on_cpu and started is None and asked > 1 and not training.distributed_no_spawn:
            module = f"fairseq_cli.{Path(inspect.getfile(main)).stem}"
            command = f"torchrun --standalone --nproc-per-node {asked} -m {module} {shlex.join(sys.argv[1:])}"
            raise ValueError(f"{asked} processes on the CPU have to be started by torchrun: {command}")
    except ValueError as error:
        sys.exit(f"hat_fairseq: error: {error}")
    if started is not None:
        # fairseq's default is the number of GPUs here; where that is 1 it would not look for torchrun or Slurm
        training.distributed_world_size = started[1]
    if not on_gpus and training.distributed_world_size > 1:
        _use_gloo(training, by_torchrun=started is not None)
    starts = started is None and training.distributed_world_size > 1 and not training.distributed_no_spawn
    with passing_on() if starts else contextlib.nullcontext():
        return original(cfg, functools.partial(_main_in_process, main), **kwargs)


def _use_gloo(training: Any, by_torchrun: bool) -> None:
    """Settings with which fairseq's processes work together on CPUs."""
    training.distributed_backend = "gloo"
    if training.ddp_backend in ("pytorch_ddp", "c10d"):
        training.ddp_backend = "legacy_ddp"  # fairseq hands a device number to torch's DDP, which a CPU does not have
    if by_torchrun and training.distributed_init_method is None:
        training.distributed_init_method = "env://"
        training.distributed_rank = int(os.environ["RANK"])
        training.distributed_no_spawn = True


def _main_in_process(main: Callable[..., Any], cfg: Any, **kwargs: Any) -> Any:
    """`main` in each process, where its GPU is known."""
    if torch.cuda.is_available() and not cfg.common.cpu and (cfg.common.bf16 or cfg.common.memory_efficient_bf16):
        message = fit_precision(cfg.common, torch.cuda.is_bf16_supported(including_emulation=False))
        if message and not cfg.distributed_training.distributed_rank:
            print(message, flush=True)
    return main(cfg, **kwargs)
