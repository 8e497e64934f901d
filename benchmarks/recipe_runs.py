"""Running recipes, writing results and averaging over seeds, for the benchmarks that train."""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from harness import device

from hat_fairseq.data.manifest import versions
from hat_fairseq.recipes import command as recipes

RESULTS = Path(__file__).resolve().parent / "results"
RUNS = Path("bench-runs")  # in the current directory


def flags_of(verb: str, name: str) -> dict[str, str]:
    """The recipe's flags with one value each."""
    words = recipes.build_commands(verb, name)[0]
    return {flag: value for flag, value in zip(words, words[1:], strict=False) if flag.startswith("--")}


def run_recipe(verb: str, name: str, flags: Sequence[str], log: Path) -> None:
    print(f"{verb} {name} {' '.join(flags)} > {log}", flush=True)
    command = [sys.executable, "-m", "hat_fairseq.cli", "recipe", verb, name, *flags]
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=True)


def write_result(question: str, path: Path, **content: Any) -> None:
    """Write a result with the entries common to all results."""
    record = {
        "question": question,
        "command": f"python benchmarks/{question}.py {shlex.join(sys.argv[1:])}".rstrip(),
        "device": device(),
        "threads": torch.get_num_threads(),
        "versions": {"torch": torch.__version__, **versions()},
        **content,
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def mean_and_deviation(name: str, values: Sequence[float]) -> dict[str, float]:
    """`{name}_mean` and `{name}_sd`."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {f"{name}_mean": round(statistics.mean(values), 3), f"{name}_sd": round(deviation, 3)}
