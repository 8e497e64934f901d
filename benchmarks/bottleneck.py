#!/usr/bin/env python3
"""How many global tokens does a sparse attention need? ERNIE-Sparse's Figure 3 on a reduced task.

    python benchmarks/bottleneck.py listops --seeds 1 2

Accuracy on the test part of the recipe `lra_listops_small` or `lra_text_small`, with 0 to 64 global tokens in blocks of
16, with representative tokens (HST) and without, without self-attention regularization, from scratch. There are no
random blocks, which are another way around the bottleneck. In the paper the accuracy without HST falls with fewer
global tokens, and with HST it does not. Preprocess the recipe first. The result and its plot are written after each
run, and runs that it holds are kept.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from lra_cells import SPARSE, Cell, cell_parser, finished_run, run_cells

BLOCK = 16
MODELS = {"sparse": ["--no-hierarchy"], "HST": []}


def main() -> None:
    parser = cell_parser(__doc__, seeds=[1, 2])
    parser.add_argument("--blocks", type=int, nargs="+", default=[0, 1, 2, 4], help=f"global blocks of {BLOCK} tokens")
    args = parser.parse_args()

    def train(cell: Cell, folder: Path, updates: int) -> dict[str, float]:
        pattern = ["--sparse-first", str(cell["global"] // BLOCK), "--sparse-last", "0", "--sparse-random", "0"]
        return finished_run(args.task, folder, [*SPARSE, *pattern, *MODELS[cell["model"]]], cell["seed"], updates)

    cells = [
        {"model": model, "global": blocks * BLOCK, "seed": seed}
        for seed, blocks, model in product(args.seeds, args.blocks, MODELS)
    ]
    path = run_cells("bottleneck", args, cells, train, lambda run: list(run.values())[:3], summary)
    record = json.loads(path.read_text(encoding="utf-8"))
    draw(record["summary"], path.with_suffix(".png"), record["recipe"])


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each model and number of global tokens: mean accuracy, and the accuracy of each seed."""
    cells: dict[str, dict[str, list[float]]] = {}
    for run in sorted(runs, key=lambda run: (run["model"], run["global"], run["seed"])):
        cells.setdefault(run["model"], {}).setdefault(str(run["global"]), []).append(run["accuracy"])
    return {
        model: {number: {"mean": round(statistics.mean(v), 2), "seeds": v} for number, v in row.items()}
        for model, row in cells.items()
    }


def draw(found: dict[str, dict[str, Any]], path: Path, recipe: str) -> None:
    """Accuracy over the number of global tokens, a line for each model, a point for each seed."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(5, 3.2), dpi=100, layout="constrained")
    for model, row in found.items():
        numbers = [int(number) for number in row]
        (line,) = axis.plot(numbers, [cell["mean"] for cell in row.values()], label=model)
        points = [
            (number, value) for number, cell in zip(numbers, row.values(), strict=True) for value in cell["seeds"]
        ]
        axis.plot(*zip(*points, strict=True), "o", color=line.get_color())
    axis.set(xlabel="global tokens", ylabel="accuracy, %", title=recipe)
    axis.legend()
    figure.savefig(path, metadata={"Software": None})


if __name__ == "__main__":
    main()
