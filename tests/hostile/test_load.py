"""A small version of benchmarks/load.py: order, number, and each document as alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commands import REPOSITORY, run_command


@pytest.mark.slow
def test_many_documents(tmp_path: Path) -> None:
    flags = ["--documents", 60, "--tokens", 2000, "--updates", 4, "--out", tmp_path / "load.json"]
    run_command(sys.executable, REPOSITORY / "benchmarks/load.py", *flags)
    rows = {run["run"]: run for run in json.loads((tmp_path / "load.json").read_text())["runs"]}
    assert {"preprocess text", "train text", "generate", "train classification", "predict"} <= rows.keys()
    assert all(0 < row["peak_mb"] < 2000 for row in rows.values()), rows
