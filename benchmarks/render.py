#!/usr/bin/env python3
"""Render the results in `benchmarks/results/` as `benchmarks/README.md`.

python benchmarks/render.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tables
from captions import INTERLEAVED, LABELS, caption

FOLDER = Path(__file__).resolve().parent
INTRODUCTION = """# Benchmarks

Each question has one script. Every result is a JSON file in `results/` with its command, versions and device;
`python benchmarks/render.py` renders this page from the results. `make bench` runs the timed benchmarks and renders the
page; `make bench BENCH="preprocessing start_up"` runs only these two.
"""
OWN_TABLES = {
    "hierarchy": tables.hierarchy,
    "classification": tables.classification,
    "plan": tables.plan,
    "whole_meetings": tables.whole_meetings,
    "needle": tables.needle,
    "needle_look": tables.needle_look,
    "lra": tables.lra,
    "load": tables.load,
}


def main() -> None:
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / "results").glob("*.json"))]
    text = INTRODUCTION
    for question in OWN_TABLES:
        text += section(question, records)
    text += INTERLEAVED
    for question in LABELS:
        if question not in OWN_TABLES:
            text += section(question, records)
    return text


def section(name: str, records: Sequence[dict[str, Any]]) -> str:
    """One question with all its results, and its figure if it has one; empty if there is no result."""
    answers = [record for record in records if record["question"] == name]
    if not answers:
        return ""
    heading, introduction = caption(name)
    text = f"\n## {heading}\n\n{introduction}\n"
    for record in answers:
        text += OWN_TABLES[name](record) if name in OWN_TABLES else tables.interleaved(record, LABELS[name])
    for figure in sorted((FOLDER / "results").glob(f"{name}*.png")):
        text += f"\n![{heading}](results/{figure.name})\n"
    return text


if __name__ == "__main__":
    main()
