"""Benchmarks' contenders take turns in processes of their own, and only comparable ones get a result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import harness
import pytest
from commands import run_command

SCRIPT = '''
"""A benchmark of two ways to add numbers."""
import os
import sys
sys.path.insert(0, BENCHMARKS)
import torch
from harness import Job, run

def build(name, setting):
    if setting["broken"] == name:
        raise ValueError("cannot be built")
    print("libraries print, too")
    total = []

    def step():
        total.append(sum(range(setting["count"] * (20 if name == "slow" else 1))))
        return {"numbers": setting["count"]}

    def finish():
        return {"_totals": total, "steps": len(total), "wrong": setting["wrong"] == name, "process": os.getpid()}

    return Job(step, {"threads": torch.get_num_threads(), "omp": os.environ["OMP_NUM_THREADS"]}, finish)

def check(setting, ends):
    if ends["fast"]["wrong"] != ends["slow"]["wrong"]:
        raise SystemExit("the totals differ")
    assert len(ends["fast"]["_totals"]) == len(ends["slow"]["_totals"])
    return [f"{setting['count']} numbers each"]

settings = [{"name": "{count} numbers", "count": count, "broken": "", "wrong": ""} for count in (30000, 60000)]
settings[1]["contenders"] = ["fast"]
if __name__ == "__main__":
    run("adding", __doc__, build, contenders=["fast", "slow"], settings=settings, reference="fast",
        check=lambda setting, ends: check(setting, ends) if len(ends) > 1 else [], rounds=3, versions=["numpy"])
'''


def adding(folder: Path, *flags: object, check: bool = True) -> subprocess.CompletedProcess:
    script = folder / "adding.py"
    script.write_text(SCRIPT.replace("BENCHMARKS", repr(str(Path(harness.__file__).parent))), encoding="utf-8")
    return run_command(sys.executable, script, "--out", folder / "out.json", *flags, check=check)


def test_contenders_take_turns_and_the_summary_follows(tmp_path: Path) -> None:
    adding(tmp_path, "--threads", 1)
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    taken = [(run["setting"], run["round"], run["contender"]) for run in record["runs"]]
    both = [("30000 numbers", number, name) for number in range(3) for name in ("fast", "slow")]
    assert taken == both + [("60000 numbers", number, "fast") for number in range(3)]
    assert all(run["seconds"] > 0 and run["cpu_seconds"] > 0 for run in record["runs"])
    assert {run["numbers"] for run in record["runs"]} == {30000, 60000}
    assert record["summary"] == harness.summary(record["runs"], "fast")
    assert record["summary"]["30000 numbers"]["fast"]["times_most"] == 1.0
    assert record["summary"]["30000 numbers"]["slow"]["times_least"] > 1.0
    assert record["checks"][0] == {"setting": "30000 numbers", "verified": ["30000 numbers each"]}
    assert record["settings"][1]["contenders"] == ["fast"] and "numpy" in record["versions"]
    processes = record["processes"]
    assert len({process["process"] for process in processes}) == len(processes) == 3
    for process in processes:
        assert process["steps"] == 4 and process["threads"] == 1 and process["omp"] == "1"
        assert "_totals" not in process and process["peak_bytes"] >= process["built_bytes"] > 0


def test_times_are_compared_within_a_round() -> None:
    pairs = [("a", 0, 1.0), ("b", 0, 3.0), ("a", 1, 2.0), ("b", 1, 4.0), ("a", 2, 1.0), ("b", 2, 8.0)]
    runs = [
        {"contender": name, "setting": "s", "round": number, "seconds": seconds, "cpu_seconds": 2 * seconds}
        for name, number, seconds in pairs
    ]
    row = harness.summary(runs, "a")["s"]["b"]
    assert (row["median"], row["least"], row["most"], row["cpu_median"]) == (4.0, 3.0, 8.0, 8.0)
    assert (row["times_median"], row["times_least"], row["times_most"]) == (3.0, 2.0, 8.0)
    assert "times_median" not in harness.summary(runs, "absent")["s"]["b"]


def test_flags_limit_and_change_what_is_measured(tmp_path: Path) -> None:
    flags = ["--rounds", 1, "--settings", 0, "--contenders", "slow", "--set", "count=7"]
    adding(tmp_path, *flags)
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [(run["setting"], run["contender"], run["numbers"]) for run in record["runs"]] == [("7 numbers", "slow", 7)]
    assert record["checks"][0]["verified"] == ["not compared: only slow took part"]
    refused = adding(tmp_path, "--set", "size=7", check=False)
    assert refused.returncode == 1 and "--set size=7" in refused.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [("wrong=slow", "the totals differ"), ("broken=slow", "slow, 30000 numbers: ended with status 1")],
)
def test_what_cannot_be_compared_has_no_result(tmp_path: Path, change: str, message: str) -> None:
    failed = adding(tmp_path, "--rounds", 1, "--settings", 0, "--set", change, check=False)
    assert failed.returncode == 1 and not (tmp_path / "out.json").exists()
    last = failed.stderr.strip().splitlines()[-1]
    assert message in last
    assert ("cannot be built" in failed.stderr) == change.startswith("broken")
