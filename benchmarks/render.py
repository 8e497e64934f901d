#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`; no figure there is typed by hand.

python benchmarks/render.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tables
from captions import CAPTIONS, INTERLEAVED
from goals import GOALS, bounds, outcome

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

One file for each question; every result is a JSON file in `results/` with its command, versions and device, and
`python benchmarks/render.py` makes this page of them. `make bench` runs those that take time and renders the page;
`make bench BENCH="preprocessing start_up"` runs only these.
"""
OWN_TABLES = {"hierarchy": tables.hierarchy, "classification": tables.classification}


def main() -> None:
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / "results").glob("*.json"))]
    text = INTRODUCTION + goals(records)
    for question in OWN_TABLES:
        text += section(question, records)
    text += INTERLEAVED
    for question in CAPTIONS:
        if question not in OWN_TABLES:
            text += section(question, records)
    return text


def section(name: str, records: Sequence[dict[str, Any]]) -> str:
    """One question with all its results, and its figure if it has one; nothing if there is no result."""
    question = CAPTIONS[name]
    found = [record for record in records if record["question"] == name]
    if not found:
        return ""
    text = f"\n## {question.heading}\n\n{question.introduction.strip()}\n"
    for record in found:
        text += OWN_TABLES[name](record) if name in OWN_TABLES else tables.interleaved(record, question)
    for figure in sorted((FOLDER / "results").glob(f"{name}*.png")):
        text += f"\n![{question.heading}](results/{figure.name})\n"
    return text


def goals(records: Sequence[dict[str, Any]]) -> str:
    """What was to be reached, and what was."""
    lines = ["\n## Goals\n", "| question | peer | goal | measured | met? |", "|---|---|---|---|---|"]
    for goal in GOALS:
        found = [record for record in records if record["question"] == goal.result]
        cells = [goal.question, goal.peer, bounds(goal), *outcome(goal, found)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
