"""The page of benchmarks is what its results say, and the benchmarks compare what is comparable."""

import importlib
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import harness
import page
import pytest
import render
import render_studies
from commands import run_command

BENCHMARKS, STUDIES = Path(harness.__file__).parent, Path(render_studies.__file__).parent
RECORDS = [pytest.param(each, id=each["command"].partition("/")[2]) for each in page.records_of(BENCHMARKS)]
SCRIPTS = [path for folder in (BENCHMARKS, STUDIES) for path in sorted(folder.glob("*.py"))]
RUNNABLE = [path for path in SCRIPTS if "if __name__" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("word", "recorded"),
    [("/a/data/articles/bin", "articles/bin"), ("labels=/x/labels", "labels=x/labels"), ("/x", "x"), ("a/b", "a/b")],
)
def test_a_result_records_no_folder_of_one_machine(word: str, recorded: str) -> None:
    assert harness.without_folder(word) == recorded


@pytest.mark.slow
def test_the_page_is_rendered_from_the_results() -> None:
    assert (BENCHMARKS / "README.md").read_text(encoding="utf-8") == render.page()


@pytest.mark.parametrize("record", [each for each in RECORDS if "reference" in each.values[0]])
def test_summaries_follow_from_the_runs(record: page.Record) -> None:
    assert record["summary"] == harness.summary(record["runs"], record["reference"])


@pytest.mark.parametrize("script", RUNNABLE, ids=lambda path: path.stem)
def test_every_script_answers_help(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script.stem, "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(script), run_name="__main__")
    assert "usage:" in capsys.readouterr().out


SCRIPT = """
import os
import sys
sys.path.insert(0, BENCHMARKS)
from harness import Job, run

def build(name, setting):
    total = []

    def step():
        total.append(sum(range(setting["count"] * (20 if name == "slow" else 1))))
        return {"numbers": setting["count"]}

    return Job(step, {}, lambda: {"steps": len(total), "wrong": setting["wrong"] == name, "process": os.getpid()})

def check(setting, ends):
    if ends["fast"]["wrong"] != ends["slow"]["wrong"]:
        raise SystemExit("the totals differ")
    return [f"{setting['count']} numbers each"]

if __name__ == "__main__":
    run(build, check, contenders=["fast", "slow"], reference="fast", rounds=3,
        settings=[{"name": "{count} numbers", "count": 30000, "wrong": ""}], versions=["numpy"])
"""


def adding(folder: Path, *flags: object, check: bool = True) -> subprocess.CompletedProcess:
    script = folder / "adding.py"
    script.write_text(SCRIPT.replace("BENCHMARKS", repr(str(BENCHMARKS))), encoding="utf-8")
    return run_command(sys.executable, script, "--out", folder / "out.json", *flags, check=check)


@pytest.mark.slow
def test_contenders_take_turns_in_processes_of_their_own(tmp_path: Path) -> None:
    adding(tmp_path, "--threads", 1)
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    taken = [(run["setting"], run["round"], run["contender"]) for run in record["runs"]]
    assert taken == [("30000 numbers", number, name) for number in range(3) for name in ("fast", "slow")]
    assert record["summary"]["30000 numbers"]["fast"]["times_most"] == 1.0
    assert record["summary"]["30000 numbers"]["slow"]["times_least"] > 1.0
    assert len({process["process"] for process in record["processes"]}) == 2
    assert all(process["steps"] == 4 and process["peak_bytes"] > 0 for process in record["processes"])


@pytest.mark.slow
def test_what_cannot_be_compared_has_no_result(tmp_path: Path) -> None:
    failed = adding(tmp_path, "--rounds", 1, "--set", "wrong=slow", check=False)
    assert failed.returncode == 1
    assert not (tmp_path / "out.json").exists()
    assert "the totals differ" in failed.stderr


def test_times_are_compared_within_a_round() -> None:
    pairs = [("a", 0, 1.0), ("b", 0, 3.0), ("a", 1, 2.0), ("b", 1, 4.0), ("a", 2, 1.0), ("b", 2, 8.0)]
    runs = [
        {"contender": name, "setting": "s", "round": number, "seconds": seconds, "cpu_seconds": 2 * seconds}
        for name, number, seconds in pairs
    ]
    row = harness.summary(runs, "a")["s"]["b"]
    assert (row["median"], row["cpu_median"]) == (4.0, 8.0)
    assert (row["times_median"], row["times_least"], row["times_most"]) == (3.0, 2.0, 8.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "index", "sizes", "sentence"),
    [
        ("generation", 0, "source=64 batch=2 new=8", "the same 4 hypotheses of every document"),
        ("generation", 6, "source=64 batch=2 new=8", "the same 4 hypotheses of every document"),
        ("generation", 9, "source=64 batch=2 new=8", "the same 4 hypotheses of every document"),
        ("generation", 11, "source=64 batch=3 new=8 lengths=[64,30,41]", "the same 4 hypotheses of every document"),
        ("training", 5, "source=70 target=20 layers=1", "more of the hierarchy in HAT"),
        ("training", 0, "source=70 target=20 layers=1", "the same loss (1e-5) and gradient (1e-4)"),
        ("gpu", 4, "source=70 target=20 layers=1", "the same loss (1e-5) and gradient (1e-4)"),
        ("gpu", 8, "source=70 target=20 layers=1", "the same loss (1e-5) and gradient (1e-4)"),
        ("gpu", 2, "source=64 batch=2 new=8", "the same 4 hypotheses of every document"),
        ("gpu_windows", 1, "length=300 window=40", "the same outputs"),
    ],
)
def test_contenders_compute_the_same(script: str, index: int, sizes: str, sentence: str) -> None:
    """In this process; `benchmarks/harness.py` runs each in a process of its own."""
    module = importlib.import_module(script)
    for package in {re.split("[ ,]", name)[0] for name in module.SETTINGS[index]["contenders"]}:
        if package in ("transformers", "ctranslate2"):
            pytest.importorskip(package)
    setting = {**module.SETTINGS[index], "width": 48, "heads": 4, "vocabulary": 500}
    setting |= {name: json.loads(value) for name, value in (pair.split("=") for pair in sizes.split())}
    setting["name"] = setting["name"].format(**setting)
    runs, ends = [], {}
    for name in setting.get("contenders", module.CONTENDERS):
        job = module.build(name, setting)
        job.step()
        runs.append(job.step())
        ends[name] = {**job.facts, **job.finish()}
    assert len({run["tokens"] for run in runs}) == 1
    assert sentence in "; ".join(module.check(setting, ends))


@pytest.mark.slow
def test_load(tmp_path: Path) -> None:
    """A small version of benchmarks/load.py, which compares order, number, and each document with the same alone."""
    flags = ["--documents", 20, "--tokens", 500, "--updates", 2, "--out", tmp_path / "load.json"]
    run_command(sys.executable, BENCHMARKS / "load.py", *flags)
    rows = {run["run"]: run for run in json.loads((tmp_path / "load.json").read_text())["runs"]}
    assert {"preprocess text", "train text", "generate", "train classification", "predict"} <= rows.keys()
    assert all(0 < row["peak_mb"] < 2000 for row in rows.values()), rows
