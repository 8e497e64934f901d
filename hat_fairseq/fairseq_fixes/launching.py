"""Launching a run: the number and the precision of its processes are checked before it starts.

In fairseq a run takes the number of processes that torchrun or Slurm has started; with another number than planned,
every update has another size.
"""

import atexit
import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fairseq.distributed.utils as distributed_utils
import torch
from torch import distributed

from . import settings, signals

_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SLURM = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")
_FLAG = "distributed-world-size"


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
    """Calls fairseq's `call_main` after the checks; a run that fails one ends with one line."""
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
    with signals.passing_on() if starts else contextlib.nullcontext():
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
    """Destroys the process group, as `call_main` should: its threads can abort the process at its end, status 134."""
    if distributed.is_initialized():
        distributed.destroy_process_group()
        vars(distributed_utils.get_global_group).clear()  # fairseq keeps a group of its own there
