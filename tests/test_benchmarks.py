"""The page of benchmarks is what its results say."""

from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from argparse import Namespace
from pathlib import Path

import harness
import pytest
import tables
import torch
from captions import LABELS
from commands import REPOSITORY, run_command

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results").glob("*.json"))


def test_the_page_is_rendered_from_the_results() -> None:
    assert RESULTS
    assert (BENCHMARKS / "README.md").read_text(encoding="utf-8") == runpy.run_path(str(BENCHMARKS / "render.py"))[
        "page"
    ]()


def test_the_windows_that_are_compared_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    script = runpy.run_path(str(BENCHMARKS / "long_attention.py"))
    x = torch.randn(1, 300, script["WIDTH"], generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(script["core"]("window")(x), script["reference_window"](x), atol=2e-5, rtol=1e-4)
        x = torch.randn(1, 3072, script["WIDTH"], generator=torch.Generator().manual_seed(0))
        ours, theirs = (script["core"](name)(x) for name in ("block-sparse", "bigbird"))
    torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_summaries_follow_from_the_runs(path: Path) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    if "reference" in record:
        assert record["summary"] == harness.summary(record["runs"], record["reference"])
    else:
        summary = runpy.run_path(str(BENCHMARKS / f"{record['question']}.py"))["summary"]
        assert record["summary"] == summary(record["runs"])
    assert {"command", "device", "threads", "versions"} <= record.keys()


def test_the_contenders_are_comparable() -> None:
    """Same token-level layers; ours has one cross-segment layer in three, hat_roberta an attention in each, on top."""
    pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")
    script = runpy.run_path(str(BENCHMARKS / "long_encoders.py"))
    sizes = Namespace(**script["SETTINGS"][0] | {"width": 24, "heads": 4, "vocabulary": 100, "positions": 768})
    tokens, states, layers = torch.randint(4, 99, (1, 768)), {}, {}
    tokens[:, ::32] = 0
    installed = importlib.util.find_spec("lsg_converter") is not None
    for name in [name for name in script["CONTENDERS"] if installed or name != "lsg"]:
        model, run = script["build"](name, sizes)
        states[name] = run(tokens)
        states[name].sum().backward()
        layers[name] = sum(p.numel() for key, p in model.named_parameters() if "layer." in key or "layers." in key)
    assert {tuple(out.shape) for out in states.values()} == {(1, 768, 24)}
    attention = 4 * (24 * 24 + 24)
    layer = attention + 2 * 24 * 96 + 96 + 24 + 4 * 24
    assert layers["full attention"] == layers["bigbird"] == 3 * layer
    assert layers["ernie_sparse"] == layers["block-sparse"] == layers.get("lsg", 3 * layer) == 3 * layer
    assert layers["longformer"] == 3 * layer + 3 * 3 * (24 * 24 + 24)  # projections of global tokens, not used
    assert layers["hierarchical_transformer"] == 4 * layer
    assert layers["hat_roberta"] == 3 * (layer + attention + 2 * 24)
    assert layers["poolingformer"] == 3 * layer + 3 * (24 * 24 + 24) + 2 * 5 * 24  # the second level of one layer


@pytest.mark.slow
def test_long_encoders_measures_and_its_result_is_rendered(tmp_path: Path) -> None:
    script, out = BENCHMARKS / "long_encoders.py", tmp_path / "result.json"
    flags = "--set width=24 heads=4 vocabulary=100 positions=128 length=70 --threads 1 --rounds 2 --settings 0"
    run_command(
        sys.executable,
        script,
        *flags.split(),
        "--contenders",
        "hierarchical_transformer",
        "full attention",
        "--out",
        out,
    )
    record = json.loads(out.read_text(encoding="utf-8"))
    taken = [(run["setting"], run["round"], run["contender"]) for run in record["runs"]]
    assert taken == [
        ("70 tokens", number, name) for number in range(2) for name in ("hierarchical_transformer", "full attention")
    ]
    assert all(run["seconds"] > 0 and run["tokens"] == 70 for run in record["runs"])
    assert all(process["peak_bytes"] > process["built_bytes"] > 0 for process in record["processes"])
    ours = record["summary"]["70 tokens"]["hierarchical_transformer"]
    assert ours["times_least"] == ours["times_most"] == 1.0
    table = tables.interleaved(record, LABELS["long_encoders"])
    assert table.count("\n| 70 tokens |") == 2 and "S\\|S\\|SD" in table and "tokens/s" in table
    assert "not compared" in table and "width 24, heads 4" in table


def test_the_largest_batch_follows_from_two_peaks() -> None:
    lengths = [(8, [1]), (8, [1, 1, 1]), (8, [1, 0.5]), (16, [1])]
    settings = [{"name": str(number), "length": n, "shares": s} for number, (n, s) in enumerate(lengths)]
    peaks = {"0": 2e9, "1": 4e9, "2": 3e9, "3": 5e9}
    processes = [{"setting": name, "contender": "ours", "peak_bytes": peak} for name, peak in peaks.items()]
    record = {"settings": settings, "processes": processes}
    assert tables.largest_batches(record, {"ours": "ours"}) == ["\nDocuments of 8 tokens in 16 GB: ours: 15."]


def test_the_table_of_long_range_arena() -> None:
    runs = [
        {"model": "A", "start": "scratch", "accuracy": 20.0},
        {"model": "A", "start": "pretrained", "accuracy": 30.0},
    ]
    runs += [{"model": "A", "start": "scratch", "accuracy": 21.0}, {"model": "B", "start": "scratch", "accuracy": 17.0}]
    summary = runpy.run_path(str(BENCHMARKS / "lra.py"))["summary"](runs)
    record = {"recipe": "r", "command": "c", "settings": {"lr": "1"}, "device": "CPU", "threads": 1, "runs": runs}
    record["baselines"] = {"root operator": 33.15}
    table = tables.lra({**record, "versions": {"torch": "2"}, "summary": summary})
    assert (
        "| baseline: root operator | 33.15 | 33.15 |\n| A | 20.5 (20.0, 21.0) | 30.0 (30.0; 1 of 2 seeds) |\n" in table
    )
    assert "\n| B | 17.0 (17.0; 1 of 2 seeds) | not run |\n" in table


@pytest.mark.slow
def test_long_range_arena_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From drawn expressions to the table, with two updates a training; a second call trains nothing."""
    monkeypatch.chdir(tmp_path)
    hat = [sys.executable, "-m", "hat_fairseq.cli"]
    sizes = ["--sizes", "64", "8", "8", "--lengths", "100", "150"]
    run_command(sys.executable, REPOSITORY / "preprocess/make_lra.py", "listops", "--out", "raw", *sizes)
    run_command(*hat, "recipe", "preprocess", "lra_listops_small", "--root", "raw")
    common = ["listops", "--seeds", "1", "--updates", "2", "--out", "out/result.json"]
    command = [sys.executable, BENCHMARKS / "lra.py", *common, "--models", "Transformer", "ERNIE-Sparse"]
    command += ["--starts", "pretrained"]
    run_command(*command)
    record = json.loads(Path("out/result.json").read_text(encoding="utf-8"))
    assert len(record["runs"]) == 2 and record["settings"]["max-update"] == "2"
    assert tables.lra(record).count("\n| ") == 6
    assert "train " not in run_command(*command).stdout
    assert json.loads(Path("out/result.json").read_text(encoding="utf-8")) == record
