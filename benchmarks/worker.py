"""One contender in its own process: builds what is measured, then answers what `harness.py` asks for."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from machine import peak_memory

Setting = dict[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What a contender does in its process; everything returned goes through JSON.

    `step` is one repetition; its facts (for example `{"tokens": 2048}`) are those of this repetition, and it is timed
    from the call to the return (on a GPU: until the GPU is done). `facts` are said once. `finish` is called after the
    last repetition, untimed: what `check` compares. Keys that begin with `_` are for `check` only and not written.
    `peak_bytes` in either of the last two replaces the peak of this process, where other processes did the work.
    """

    step: Callable[[], Facts]
    facts: Facts
    finish: Callable[[], Facts] = dict


Build = Callable[[str, Setting], Job]


def where() -> str:
    """The device that contenders run on."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype() -> torch.dtype:
    """Of the models: bfloat16 on a GPU, fp32 on the CPU."""
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def answer(build: Build, name: str, setting: Setting) -> None:
    """Answers what stdin asks for, `step` or `end`; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.manual_seed(1)
    job = build(name, setting)
    built = peak_memory()
    for line in sys.stdin:
        if line.strip() == "step":
            told = timed(job.step)
        else:
            told = {"peak_bytes": peak_memory(), "built_bytes": built, **job.facts}  # before finish needs more
            told |= job.finish()
        answers.write(json.dumps(told) + "\n")
        answers.flush()


def timed(step: Callable[[], Facts]) -> Facts:
    """Seconds of one repetition, by the clock, and those of all threads and processes that it started."""
    synchronise()
    begin, cpu = time.perf_counter(), cpu_seconds()
    told = step()
    synchronise()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds() - cpu, **told}


def cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
