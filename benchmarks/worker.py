"""The process of one contender: builds its job and answers the requests of `harness.py`."""

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
    """The work of a contender; all facts pass through JSON.

    Attributes:
        step: one timed repetition (on a GPU until the GPU is done); returns facts such as `{"tokens": 2048}`.
        facts: reported once.
        finish: called after the last repetition, untimed; returns facts for `check`. Keys that begin with `_` are not
            written. `peak_bytes` here or in `facts` replaces the peak of this process, if other processes do the work.
    """

    step: Callable[[], Facts]
    facts: Facts
    finish: Callable[[], Facts] = dict


Build = Callable[[str, Setting], Job]


def where() -> str:
    """The device of the contenders."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype() -> torch.dtype:
    """The type of the models: bfloat16 on a GPU, fp32 on the CPU."""
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def answer(build: Build, name: str, setting: Setting) -> None:
    """Answers requests on stdin, `step` or `end`; output of libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.manual_seed(1)
    job = build(name, setting)
    built = peak_memory()
    for line in sys.stdin:
        if line.strip() == "step":
            facts = timed(job.step)
        else:
            facts = {"peak_bytes": peak_memory(), "built_bytes": built, **job.facts}  # before `finish` allocates more
            facts |= job.finish()
        answers.write(json.dumps(facts) + "\n")
        answers.flush()


def timed(step: Callable[[], Facts]) -> Facts:
    """The facts of one repetition, with its wall-clock seconds and the CPU seconds of its threads and processes."""
    synchronise()
    begin, cpu = time.perf_counter(), cpu_seconds()
    facts = step()
    synchronise()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds() - cpu, **facts}


def cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
