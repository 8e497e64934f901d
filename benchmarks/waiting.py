#!/usr/bin/env python3
"""What do other busy processes cost, and what does GOMP_SPINCOUNT change?

    python benchmarks/waiting.py

Updates of a small and of a larger HAT and a generation, with two threads, on an idle machine and beside as many busy
processes as there are cores. `default` is OpenMP's own waiting, `hat` is `GOMP_SPINCOUNT=3000`, and with `passive`
waiting threads sleep at once. Beside the busy processes, a fair share of the cores doubles the time.
"""

from __future__ import annotations

from typing import Any

import generation
from harness import Facts, Job, Setting, run
from peers import ours
from train_step import OURS, model_sizes, update_job

WAITING = {
    "default": {},
    "hat": {"GOMP_SPINCOUNT": "3000"},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"},
}
UPDATE = {"documents": 2, "target": 60, "layers": 2, "heads": 4, "vocabulary": 3000, "attention_dropout": 0.1}
WORK: list[dict[str, Any]] = [
    {"name": "update, 500 tokens, width 128", "source": 500, "width": 128, "times": 20, **UPDATE},
    {"name": "update, 1,024 tokens, width 512", "source": 1024, "width": 512, "times": 2, **UPDATE},
    {
        **generation.setting(3072, 1, 32, width=256, heads=4, vocabulary=8000),
        "name": "generation, 3,072 tokens",
        "times": 4,
    },
]
SETTINGS = [
    {**work, "name": f"{work['name']}, {busy} busy processes", "busy": busy} for work in WORK for busy in (0, 2)
]


def main() -> None:
    run(
        "waiting",
        __doc__ or "",
        build,
        contenders=tuple(WAITING),
        settings=SETTINGS,
        reference="default",
        check=check,
        environments=WAITING,
        rounds=5,
    )


def build(name: str, setting: Setting) -> Job:
    """The same work for all contenders, several times in a repetition."""
    if "new" in setting:
        job = generation.fairseq_job("hat", setting)
    else:
        job = update_job(ours("hat_bart_base", no_hierarchy=False, **model_sizes(setting)), OURS, setting)
    return Job(lambda: [job.step() for _ in range(setting["times"])][-1], job.facts)


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    return [generation.same_parameters(ends, list(ends))]


if __name__ == "__main__":
    main()
