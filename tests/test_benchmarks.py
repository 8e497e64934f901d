"""The page of benchmarks is what its results say, and the benchmarks compare what is comparable."""

import importlib
import itertools
import json
import random
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import decisions
import experiments
import harness
import needle
import needle_far
import needle_global
import needle_roll
import pointers
import pytest
import short_listops
import torch
from commands import run_command
from fairseq.data import Dictionary
from needle import VALUES, batch, dictionary, document, read

from listops import value_of  # short_listops has put its folder on the path

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
RECORDS = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((BENCHMARKS / "results").glob("*.json"))]
NOT_RECORDED = {"gpu"}  # no GPU has run it


def test_the_page_is_rendered_from_the_results() -> None:
    page = runpy.run_path(str(BENCHMARKS / "render.py"))["page"]()
    assert RECORDS and (BENCHMARKS / "README.md").read_text(encoding="utf-8") == page


def test_summaries_follow_from_the_runs() -> None:
    for record in RECORDS:
        if "reference" in record:
            assert record["summary"] == harness.summary(record["runs"], record["reference"]), record["command"]
        elif "summary" in record:
            module = runpy.run_path(str(BENCHMARKS / f"{record['question']}.py"))
            summary = module.get("summary", experiments.summary)
            assert record["summary"] == summary(record["runs"]), record["command"]


def test_every_script_has_a_result_and_answers_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("*.py") if "if __name__" in path.read_text(encoding="utf-8")}
    assert scripts - {"render"} == {record["question"] for record in RECORDS} | NOT_RECORDED
    for name in sorted(scripts - {"render"}):
        monkeypatch.setattr(sys, "argv", [name, "--help"])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name="__main__")
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
    assert failed.returncode == 1 and not (tmp_path / "out.json").exists() and "the totals differ" in failed.stderr


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
        ("training", 5, "source=70 target=20 layers=1", "more of the hierarchy in HAT"),
        ("training", 0, "source=70 target=20 layers=1", "the same loss (1e-5) and gradient (1e-4)"),
        ("gpu", 4, "source=70 target=20 layers=1", "the same loss (1e-5) and gradient (1e-4)"),
        ("gpu", 2, "source=64 batch=2 new=8", "the same 4 hypotheses of every document"),
    ],
)
def test_contenders_compute_the_same(script: str, index: int, sizes: str, sentence: str) -> None:
    """In this process; `benchmarks/harness.py` runs each in a process of its own."""
    module = importlib.import_module(script)
    for package in {re.split("[ ,]", name)[0] for name in module.SETTINGS[index]["contenders"]}:
        if package in ("transformers", "ctranslate2"):
            pytest.importorskip(package)
    setting = {**module.SETTINGS[index], "width": 48, "heads": 4, "vocabulary": 500}
    setting |= {name: int(value) for name, value in (pair.split("=") for pair in sizes.split())}
    setting["name"] = setting["name"].format(**setting)
    runs, ends = [], {}
    for name in setting.get("contenders", module.CONTENDERS):
        job = module.build(name, setting)
        job.step()
        runs.append(job.step())
        ends[name] = {**job.facts, **job.finish()}
    assert len({run["tokens"] for run in runs}) == 1 and sentence in "; ".join(module.check(setting, ends))


@pytest.mark.slow
def test_load(tmp_path: Path) -> None:
    """A small version of benchmarks/load.py, which compares order, number, and each document with the same alone."""
    flags = ["--documents", 60, "--tokens", 2000, "--updates", 4, "--out", tmp_path / "load.json"]
    run_command(sys.executable, BENCHMARKS / "load.py", *flags)
    rows = {run["run"]: run for run in json.loads((tmp_path / "load.json").read_text())["runs"]}
    assert {"preprocess text", "train text", "generate", "train classification", "predict"} <= rows.keys()
    assert all(0 < row["peak_mb"] < 2000 for row in rows.values()), rows


@pytest.fixture(scope="module")
def meetings() -> list[list[list[str]]]:
    return read("dev")


@pytest.fixture(scope="module")
def words(meetings: list[list[list[str]]]) -> Dictionary:
    return dictionary(meetings)


@pytest.mark.parametrize(
    ("task", "offset"),
    [(needle.ANY_DISTANCE, 0), (needle_far.TASK, 0), (needle_global.TASK, 0), (needle_roll.TASK, 4)],
)
def test_each_answer_stands_once_at_its_distance(task: needle.Task, offset: int, meetings: Any) -> None:
    words = dictionary(meetings, task.values)
    for seed, (_, length, questions) in itertools.product(range(8), task.stages):
        rng = random.Random(seed)
        tokens, positions, answers, distances = document(rng, words, meetings, length, questions, task, offset)
        text = [words[token] for token in tokens]
        assert len(text) == length and len(positions) == 2 * questions and positions == sorted(positions)
        assert positions[0] == task.lead + 1 and min(distances[:questions]) >= (task.even or (2,))[0]
        for position, answer, distance in zip(positions, answers, distances, strict=True):
            key, value, at = text[position], words[answer], position + distance
            assert text[at - 4 : at + 2] == ["<s>", "the", key, "is", value, "."]
            assert value in task.values[key] and sum(text.count(other) for other in task.values[key]) == 1
            assert not task.align or (at - 4) % task.align == offset


def test_windows_know_what_lies_within_their_reach_and_nothing_else(words: Dictionary, meetings: Any) -> None:
    """Another value in a needle changes the logits of its question if, and only if, it lies within the reach."""
    model = needle.build(needle.MODELS["window"], words, seed=1).double().eval()
    tokens, positions, _, distances = batch(random.Random(5), words, meetings, needle.LENGTH, 6)
    positions, distances = positions[:, : len(VALUES)], distances[:, : len(VALUES)]
    before, rows = needle.scores(model, tokens, positions), range(len(tokens))
    for number in range(len(VALUES)):
        other = tokens.clone()
        other[rows, positions[:, number] + distances[:, number]] = words.index("the")
        changed = (needle.scores(model, other, positions) != before).any(dim=-1)[:, number]
        assert changed.equal(distances[:, number] <= needle.REACH["window"])


def test_pointers_are_one_cycle_and_point_far_and_answers_are_as_many_hops_away_as_asked() -> None:
    words = pointers.dictionary()
    tokens, questions, answers = pointers.batch(random.Random(3), words, pointers.KEYS, 20)
    for row, asked, wanted in zip(tokens, questions.flatten(1, 2), answers.flatten(1), strict=True):
        text = [words[token] for token in row]
        at = {text[place - 1]: place - 1 for place, word in enumerate(text) if word == "points"}
        follows = {key: text[place + 3] for key, place in at.items()}
        assert len(at) == text.count("<s>") == pointers.KEYS and set(follows.values()) == set(at)
        assert all(abs(at[key] - at[other]) > pointers.LAYERS * pointers.WINDOW for key, other in follows.items())
        for (number, key), answer in zip(asked.tolist(), wanted.tolist(), strict=True):
            end = words[key]
            for _ in range(int(words[number][0])):
                end = follows[end]
            assert end == words[answer]


def test_the_encoder_with_a_window_follows_no_pointer() -> None:
    """Another key in a sentence changes no state of the sentence that points to it; with full attention it does."""
    words = pointers.dictionary()
    tokens, cycle = pointers.document(random.Random(3), words, pointers.KEYS)
    points = (tokens == words.index("points")).nonzero().flatten()
    first, second = (int(points[tokens[points - 1] == key]) for key in cycle[:2])
    other = tokens.clone()
    other[second + 2] = words.index("so")
    for name, reaches in (("window", False), ("hat 2", False), ("full", True)):
        encoder = pointers.build(name, words, seed=1).encoder.eval()
        with torch.no_grad():
            before, after = (encoder(ids[None]).tokens[0, first - 2 : first + 3] for ids in (tokens, other))
        assert before.equal(after) != reaches, name


def test_what_was_taken_is_listed_in_its_order(meetings: Any) -> None:
    words = dictionary(meetings)
    for word in decisions.FRAMES:
        words.add_symbol(word)
    for sentences in decisions.LENGTHS:
        tokens, taken = decisions.document(random.Random(sentences), words, meetings, sentences)
        text = " ".join(words[token] for token in tokens)
        assert re.findall(r"we take the (\w+) then", text) == [words[value] for value in taken]
        assert text.count("do we like the") == decisions.NUMBER and text.count("<s>") == sentences


def test_the_value_of_each_operator_is_that_of_its_own_expression() -> None:
    for symbols, value in short_listops.drawn(40):
        begins = [number for number, symbol in enumerate(symbols) if symbol in short_listops.OPERATORS]
        values = short_listops.inner_values(symbols)
        for begin, inner in zip(begins, values, strict=True):
            depths = itertools.accumulate((s[0] == "[") - (s == "]") for s in symbols[begin:])
            end = begin + next(number for number, depth in enumerate(depths) if depth == 0)
            assert value_of(symbols[begin : end + 1]) == inner
        assert values[0] == value and short_listops.views(symbols)["root operator"] == symbols[0]


@pytest.mark.slow
def test_pointers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call keeps the runs of the first."""
    monkeypatch.setattr(pointers, "TESTED", 2)
    threads = torch.get_num_threads()
    out, runs = tmp_path / "out.json", []
    for models in (["hat 0"], ["window", "hat 0", "hat 2"]):
        flags = ["--models", *models, "--seeds", "1", "--updates", "3", "--out", str(out)]
        monkeypatch.setattr(sys, "argv", ["pointers.py", *flags])
        pointers.main()
        runs.append(json.loads(out.read_text(encoding="utf-8"))["runs"])
    torch.set_num_threads(threads)
    assert [run["model"] for run in runs[1]] == ["window", "hat 0", "hat 2"] and runs[1][1] == runs[0][0]
    assert all(len(run["accuracy"]) == pointers.HOPS for run in runs[1]) and out.with_suffix(".svg").is_file()
