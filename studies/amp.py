#!/usr/bin/env python3
"""Does `--amp` on a CPU cost quality? Two small recipes with products in fp32 and in bf16, with the same seeds.

    python studies/amp.py

`ami_small` trains a small HAT on meetings; its score is the mean of ROUGE-1, 2 and L of its summaries. `ami_questions`
trains the head over a frozen MiniLM; its score is the average precision of the turns. Both are tested on the 20
meetings of the test part, in fp32. The prediction, written before the runs: [predictions.md](predictions.md).

Preprocess the recipes first. Runs go to `bench-runs/amp` in the current directory; those that are there are kept.
"""

import json
import statistics
import subprocess
import sys
from itertools import product
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
from harness import RESULTS, flags, write_result
from recipe_runs import RUNS, preprocessed, run_recipe

VERBS = {"ami_small": "generate", "ami_questions": "predict"}
METRICS = {"ami_small": "rouge", "ami_questions": "evidence"}
PRECISIONS: dict[str, list[str]] = {"fp32": [], "amp": ["--amp"]}
FIGURES = ("average precision", "rouge1", "rouge2", "rougeLsum")


def main() -> None:
    parser = flags(RESULTS / "amp.json")
    parser.add_argument("--recipes", nargs="+", choices=VERBS, default=list(VERBS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    cells = product(args.recipes, args.seeds, PRECISIONS)
    runs = [{"recipe": r, "seed": s, "precision": p, "score": score_of(r, s, p)} for r, s, p in cells]
    write_result(args.out, runs=runs)


def score_of(recipe: str, seed: int, precision: str) -> float:
    """Trains and tests, unless that was done before."""
    folder = RUNS / "amp" / f"{recipe}-{precision}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    report, out = folder / "test.score.json", folder / "test.jsonl"
    if not report.is_file():
        where = ["--seed", str(seed), "--save-dir", str(folder)]
        run_recipe("train", recipe, [*where, "--cpu", *PRECISIONS[precision]], folder / "train.log")
        checkpoint = folder / ("checkpoint_last.pt" if VERBS[recipe] == "generate" else "checkpoint_best.pt")
        words = ["--model", str(checkpoint), "--out", str(out), "--overwrite", "--score=null"]
        run_recipe(VERBS[recipe], recipe, words, folder / "test.log")
        command = [sys.executable, "-m", "hat_fairseq.cli", "score", METRICS[recipe], out]
        command += ["--references", preprocessed(recipe) / "text/test.jsonl", "--out", report]
        subprocess.run(list(map(str, command)), check=True)
    record = json.loads(report.read_text(encoding="utf-8"))
    fields: dict[str, Any] = record[str(out)]
    figures = fields.get("scores") or fields["figures"]
    return statistics.mean(figures[name]["mean"] for name in FIGURES if name in figures)


if __name__ == "__main__":
    main()
