#!/usr/bin/env python3
"""Does it help to read a meeting to its end? `ami_small_long` beside `ami_small`, which reads the first sixth.

    python benchmarks/whole_meetings.py --seeds 1 2 3

ROUGE against the references of the same meetings, and against those of other meetings. The difference shows how much a
summary says about its own meeting. Figures are means ± standard deviations over seeds.

Preprocess both recipes first. Runs go to `bench-runs/RECIPE/hat-SEED` in the current directory. Finished runs are
kept, so an interrupted benchmark resumes. `train` is the time of the whole training run, validation included.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hierarchy import finished_run
from recipe_runs import RESULTS, flags_of, mean_and_deviation, write_result

from hat_fairseq.scoring.files import read_hypotheses, read_references
from hat_fairseq.scoring.rouge import METRICS, RougeSettings, rouge, score_against_others

RECIPES = ("ami_small", "ami_small_long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    rows = [row(recipe, seed) for seed in args.seeds for recipe in RECIPES]
    write_result(
        "whole_meetings", RESULTS / "whole_meetings_ami.json", recipes=list(RECIPES), runs=rows, summary=summary(rows)
    )


def row(recipe: str, seed: int) -> dict[str, Any]:
    """The scores of one run, trained unless that was done before."""
    folder = finished_run(recipe, "hat", seed, Path(flags_of("generate", recipe)["--path"]).name, [])
    references = read_references([str(Path(flags_of("preprocess", recipe)["--out"], "text", "test.jsonl"))])
    texts = read_hypotheses(str(folder / "test.jsonl"), references)
    own = rouge(texts, references.texts, RougeSettings(bootstrap_samples=0))
    others = score_against_others(texts, references.texts, RougeSettings(bootstrap_samples=0))
    seconds = re.findall(r"done training in ([0-9.]+) seconds", (folder / "train.log").read_text(encoding="utf-8"))
    scores = {metric: round(own.scores[metric].mean, 3) for metric in METRICS}
    drops = {f"{metric} lost against other meetings": round(scores[metric] - others[metric], 3) for metric in METRICS}
    return {"kind": recipe, "seed": seed, "scores": scores | drops | {"train": float(seconds[-1])}}


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each figure: mean and standard deviation over seeds of both recipes."""
    result = {}
    for name in rows[0]["scores"]:
        result[name] = {
            key: figure
            for recipe in RECIPES
            for key, figure in mean_and_deviation(
                recipe, [row["scores"][name] for row in rows if row["kind"] == recipe]
            ).items()
        }
    return result


if __name__ == "__main__":
    main()
