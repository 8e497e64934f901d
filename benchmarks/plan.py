#!/usr/bin/env python3
"""Does `hat plan` predict the memory? Its estimates beside the peak of real updates.

    python benchmarks/plan.py

Recipes with their own lengths, with fewer layers and smaller batches where the name says so, on the CPU in fp32. Each
runs two updates of fairseq's trainer in a process of its own, on the batches of the estimate. *Measured* is the peak of
the process, and the estimate contains 0.54 GB for the interpreter and the libraries. The rest of a difference is memory
that glibc's malloc does not return when a tensor of less than 32 MB is freed; `MALLOC_MMAP_THRESHOLD_=1000000` in the
environment makes it return all but the smallest. Nothing has been measured on a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from machine import peak_memory
from recipe_runs import RESULTS, write_result

from hat_fairseq.planning import command as plan
from hat_fairseq.planning.training import batch, build

ON_CPU = ("--cpu", "--gpus", "1")
SMALL_BART = ("--bf16=null", "--arch", "hat_bart_base", "--encoder-layers", "2", "--decoder-layers", "2")
SEGMENTS = ("--bf16=null", "--layout", "S|S|SD")
#: Name -> recipe, flags that make it smaller, and the estimate that is meant.
CASES: dict[str, tuple[str, Sequence[str], str]] = {
    "ami_small": ("ami_small", (), "stored"),
    "pubmed, 2 + 2 layers of 768": ("pubmed", (*SMALL_BART, "--batch-size", "1"), "stored"),
    "pubmed, 2 + 2 layers of 768, checkpointed": ("pubmed", (*SMALL_BART, "--batch-size", "1"), "recomputed"),
    "wmt20_en_de, 2 + 2 layers": (
        "wmt20_en_de",
        ("--bf16=null", "--encoder-layers", "2", "--decoder-layers", "2", "--max-tokens", "2048"),
        "stored",
    ),
    "squad2, 4 layers": ("squad2", ("--bf16=null", "--encoder-layers", "4", "--batch-size", "8"), "stored"),
    "hyperpartisan, 3 layers": ("hyperpartisan", (*SEGMENTS, "--batch-size", "1"), "stored"),
    "hierarchical_transformer_pretraining, 3 layers": ("hierarchical_transformer_pretraining", SEGMENTS, "stored"),
}
MALLOCS = {"default": {}, "returning": {"MALLOC_MMAP_THRESHOLD_": "1000000"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.child:
        return print(json.dumps(measure(**json.loads(args.child))))
    runs = [run for name, case in CASES.items() for run in compare(name, *case, args.threads)]
    write_result("plan", RESULTS / "plan_cpu.json", runs=runs, summary=summary(runs))


def compare(name: str, recipe: str, flags: Sequence[str], variant: str, threads: int) -> list[dict[str, Any]]:
    """The estimate of a case, and the peak of its process with each malloc."""
    flags = [*flags, *ON_CPU]
    defaults = {"gpu_memory": None, "dictionary_size": None, "source_tokens": None, "target_tokens": None}
    planned = plan.make_plan(Namespace(recipe=recipe, others=flags, **defaults))
    estimate = planned[variant]
    words, size = plan.arguments(recipe, flags)
    job = {"words": [*words, *plan.VARIANTS[variant]], "size": size}
    job |= {"documents": plan.documents_of(planned["batch"], planned["document"]), "document": planned["document"]}
    runs = []
    for malloc, variables in MALLOCS.items():
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1]), **variables}
        command = [sys.executable, __file__, "--threads", str(threads), "--child", json.dumps(job)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        facts = {"parameters": estimate["parameters"], "estimated": estimate["peak"] + estimate["process"]}
        runs.append({"case": name, "malloc": malloc, **facts, **json.loads(done.stdout.splitlines()[-1])})
        print(json.dumps(runs[-1]), flush=True)
    return runs


def measure(words: list[str], size: int | None, documents: int, document: dict[str, int]) -> dict[str, int]:
    """Two updates of fairseq's trainer; returns the peak of this process."""
    from fairseq.trainer import Trainer

    training = build(words, size, "cpu")
    trainer = Trainer(training.cfg, training.task, training.model, training.criterion)
    samples = [batch(training, documents, **document)] * min(2, training.cfg.optimization.update_freq[0])
    trainer.begin_epoch(1)
    for _ in range(2):
        trainer.train_step(samples)
    return {"measured": peak_memory()}


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each case and malloc: by how many percent the estimate differs from the measured peak."""
    result: dict[str, dict[str, float]] = {}
    for run in runs:
        difference = 100 * (run["estimated"] / run["measured"] - 1)
        result.setdefault(run["case"], {})[run["malloc"]] = round(difference, 1)
    return result


if __name__ == "__main__":
    main()
