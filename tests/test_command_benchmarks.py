"""Benchmarks of whole commands: really run on a tiny input, and refused where the sides differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cli_timing
import preprocessing
import pytest
import start_up
from byte_level_bpe import write_byte_level_bpe
from commands import run_command

pytestmark = pytest.mark.slow
BENCHMARKS = Path(preprocessing.__file__).parent


def test_preprocessing_gives_the_same_ids_as_fairseq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_byte_level_bpe(tmp_path / "bpe")
    monkeypatch.setenv("HAT_GPT2_BPE", str(tmp_path / "bpe"))
    (tmp_path / "mine").mkdir()
    sentences = ["It's 12.50$ -- naïve!", "  Two\tspaces  here.", "<s> is a word, 北京 too."]
    for split in ("train", "valid", "test"):
        records = [{"id": f"{n}", "sentences": sentences[n:] + sentences[:n], "target": ["Short."]} for n in range(3)]
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"mine/{split}.jsonl").write_text(text, encoding="utf-8")
    flags = ["--rounds", 1, "--settings", 0, "--set", f"input={tmp_path / 'mine'}", "--out", tmp_path / "out.json"]
    run_command(sys.executable, BENCHMARKS / "preprocessing.py", *flags)
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    hat, fairseq = (process["datasets"] for process in record["processes"])
    assert hat == fairseq and hat["train.source"].startswith("3 lines")
    assert all(run["documents"] == 9 and run["bytes"] > 300 for run in record["runs"])
    assert record["checks"][0]["verified"][0].startswith("same dictionary")


def test_datasets_that_differ_are_no_comparison() -> None:
    ends = {"hat": {"datasets": {"train.source": "a"}}, "fairseq": {"datasets": {"train.source": "b"}}}
    with pytest.raises(SystemExit, match="the datasets differ: train.source: a, fairseq b"):
        preprocessing.check({"name": "s"}, ends)


def test_one_hypothesis_of_the_length_asked_for() -> None:
    ends = {"hat": {"lengths": [19]}, "fairseq": {"lengths": [19]}}
    assert start_up.check({"name": "s", "tokens": 20}, ends)
    with pytest.raises(SystemExit, match="fairseq did not generate"):
        start_up.check({"name": "s", "tokens": 20}, ends | {"fairseq": {"lengths": []}})


def test_a_checkpoint_to_start_from_and_the_command(tmp_path: Path) -> None:
    start_up.write_data(tmp_path)
    cli_timing.run_commands([start_up.train_command("hat", tmp_path)])
    assert (tmp_path / "checkpoint_last.pt").is_file()


def test_the_memory_is_that_of_the_largest_process_and_a_failure_has_its_text() -> None:
    small, large = ([sys.executable, "-c", f"x = bytearray({size} << 20)"] for size in (1, 200))
    assert 200 << 20 < cli_timing.run_commands([small, large]) < 300 << 20
    assert cli_timing.run_commands([small]) < 100 << 20
    with pytest.raises(RuntimeError, match="status 3: the reason"):
        cli_timing.run_commands([[sys.executable, "-c", "import sys; print('the reason'); sys.exit(3)"]])
