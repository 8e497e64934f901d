#!/usr/bin/env python3
"""Does the hierarchy help? A recipe's HAT beside its baseline without hierarchy (`--no-hierarchy`).

    python benchmarks/hierarchy.py ami_small --seeds 1 2 3
    python benchmarks/hierarchy.py ami_small --against "--decoder-kv-heads 1"    another variant of HAT in its place

Both have the same data, settings and number of updates. Figures are means ± standard deviations over seeds; the
difference is computed seed by seed. A difference smaller than several standard deviations is not evidence.

Preprocess the recipe first. Runs go to `bench-runs/RECIPE/KIND-SEED` in the current directory. Finished runs are kept,
so an interrupted benchmark resumes. Nothing is timed, so several may run at once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipe_runs import RESULTS, RUNS, flags_of, mean_and_deviation, run_recipe, write_result

from hat_fairseq.recipes import files

KINDS = {"hat": [], "plain": ["--no-hierarchy"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", choices=files.names())
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--train-flags", nargs=argparse.REMAINDER, default=[], help="all that follows goes to training")
    parser.add_argument("--against", metavar="FLAGS", help="flags of training that make the other kind")
    args = parser.parse_args()
    kinds, out = dict(KINDS), f"hierarchy_{args.recipe}"
    if args.against:
        other = "-".join(args.against.replace("-", " ").split())
        kinds, out = {"hat": [], other: args.against.split()}, f"{out}_{other}"
    generate = flags_of("generate", args.recipe)
    metric = generate["--score"].split()[0]
    runs = {
        (kind, seed): finished_run(args.recipe, kind, seed, Path(generate["--path"]).name, [*flags, *args.train_flags])
        for seed in args.seeds
        for kind, flags in kinds.items()
    }
    scores = score(args.recipe, metric, runs)
    rows = [{"kind": kind, "seed": seed, "scores": scores[folder]} for (kind, seed), folder in runs.items()]
    result = {"recipe": args.recipe, "metric": metric, "train_flags": args.train_flags}
    write_result("hierarchy", RESULTS / f"{out}.json", **result, runs=rows, summary=summary(rows))


def finished_run(name: str, kind: str, seed: int, checkpoint: str, train_flags: Sequence[str]) -> Path:
    """Train, generate and join, unless that was done before; returns the folder."""
    folder = RUNS / name / f"{kind}-{seed}"
    if (folder / "test.jsonl").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    checkpoints = folder / "checkpoints"
    seeded = ["--seed", str(seed), "--save-dir", str(checkpoints), *train_flags]
    run_recipe("train", name, seeded, folder / "train.log")
    where = ["--path", str(checkpoints / checkpoint), "--results-path", str(folder)]
    run_recipe("generate", name, where, folder / "generate.log")
    return folder


def score(name: str, metric: str, runs: dict[tuple[str, int], Path]) -> dict[Path, dict[str, float]]:
    """Mean scores of each run, by `hat score`."""
    references = Path(flags_of("preprocess", name)["--out"], "text", "test.jsonl")
    files = {str(folder / "test.jsonl"): folder for folder in runs.values()}
    out = RUNS / name / "scores.json"
    command = ["score", metric, "--references", str(references), "--hypotheses", *files]
    command += ["--json", str(out), "--overwrite"]
    subprocess.run([sys.executable, "-m", "hat_fairseq.cli", *command], check=True)
    record = json.loads(out.read_text(encoding="utf-8"))
    systems = record.get("systems", record)
    # s-BLEU is of other documents for each system: those whose number of segments is right.
    return {
        folder: {
            name: figure.get("score", figure.get("mean"))
            for name, figure in systems[path]["scores"].items()
            if name != "s-BLEU"
        }
        for path, folder in files.items()
    }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each metric: mean and standard deviation over seeds of both kinds, and of their difference seed by seed."""
    result, kinds = {}, dict.fromkeys(row["kind"] for row in rows)
    for metric in rows[0]["scores"]:
        by_kind = {kind: [row["scores"][metric] for row in rows if row["kind"] == kind] for kind in kinds}
        by_kind["difference"] = [hat - other for hat, other in zip(*by_kind.values(), strict=True)]
        result[metric] = {
            name: figure
            for kind, values in by_kind.items()
            for name, figure in mean_and_deviation(kind, values).items()
        }
    return result


if __name__ == "__main__":
    main()
