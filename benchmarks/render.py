#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`; no figure there is typed by hand.

python benchmarks/render.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

One file for each question; every result is a JSON file in `results/` with its command, versions and device, and
`python benchmarks/render.py` makes this page of them.
"""
HIERARCHY = """
## Does the hierarchy help?

HAT beside its plain twin (`--no-hierarchy`): the same data, settings and number of updates. Mean ± standard deviation
over seeds; the difference is taken seed by seed. A difference that is not several times its standard deviation shows
nothing.
"""


def main() -> None:
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / "results").glob("*.json"))]
    parts = [hierarchy(record) for record in records if record["question"] == "hierarchy"]
    return INTRODUCTION + (HIERARCHY if parts else "") + "".join(parts)


def hierarchy(record: dict[str, Any]) -> str:
    """One recipe's comparison."""
    seeds = sorted({run["seed"] for run in record["runs"]})
    lines = [
        f"\n### {record['recipe']}\n",
        f"`{record['command']}`: seeds {', '.join(map(str, seeds))}; {record['device']}, "
        f"{record['threads']} thread{'s' * (record['threads'] > 1)}, "
        f"torch {record['versions']['torch']}.\n",
        "| metric | HAT | plain | difference | seed by seed |",
        "|---|---|---|---|---|",
    ]
    for metric, figures in record["summary"].items():
        by_seed = [
            value["hat"] - value["plain"]
            for seed in seeds
            for value in [{run["kind"]: run["scores"][metric] for run in record["runs"] if run["seed"] == seed}]
        ]
        cells = [f"{figures[f'{kind}_mean']:.2f} ± {figures[f'{kind}_sd']:.2f}" for kind in ("hat", "plain")]
        cells.append(f"{figures['difference_mean']:+.2f} ± {figures['difference_sd']:.2f}")
        lines.append(f"| {metric} | {' | '.join(cells)} | {', '.join(f'{value:+.2f}' for value in by_seed)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
