"""The page of benchmarks is what its results say."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results").glob("*.json"))


def test_the_page_is_rendered_from_the_results() -> None:
    assert RESULTS
    assert (BENCHMARKS / "README.md").read_text(encoding="utf-8") == runpy.run_path(str(BENCHMARKS / "render.py"))[
        "page"
    ]()


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_summaries_follow_from_the_runs(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    summary = runpy.run_path(str(BENCHMARKS / "hierarchy.py"))["summary"]
    assert record["summary"] == summary(record["runs"])
    assert {"command", "device", "threads", "versions"} <= record.keys()
