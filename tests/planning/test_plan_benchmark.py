"""The benchmark of `hat plan` measures what it estimates."""

from __future__ import annotations

import plan as benchmark
import pytest


@pytest.mark.slow
def test_an_estimate_and_the_peaks_of_two_processes() -> None:
    runs = benchmark.compare("small", "ami_small", ["--batch-size", "1", "--update-batch-size", "2"], "stored", 1)
    assert [run["malloc"] for run in runs] == ["default", "returning"]
    # interpreter and libraries are most of it
    assert all(0.4e9 < run["measured"] < 1.5e9 and 0.5 < run["estimated"] / run["measured"] < 2 for run in runs)
    assert benchmark.summary(runs)["small"].keys() == {"default", "returning"}
