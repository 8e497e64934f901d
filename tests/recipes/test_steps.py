"""The steps of `hat recipe run` as forks: the same as new processes, and ended by the same signals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import environment

from hat_fairseq.recipes import steps

RUN = """
import sys
from hat_fairseq.recipes import steps
from pathlib import Path
steps.IMPORTED, steps.forks = (), lambda: {forks}
print("status", steps.run_step("a step", [*steps.PYTHON, *{words}], Path("{log}"), sys.stderr), flush=True)
"""
COMMANDS = {
    "a result": ["hat_fairseq.cli", "recipe", "list"],
    "without arguments": ["hat_fairseq.cli", "train"],
    "a training without data": ["hat_fairseq.cli", "train", "absent"],
    "an option that is unknown": ["hat_fairseq.cli", "preprocess", "ami", "--out", "x", "--outt", "y"],
    "a missing file": ["hat_fairseq.cli", "score", "qa", "absent.jsonl", "--references", "absent.jsonl"],
    "another module": ["platform", "--help"],
}
STATUS = dict.fromkeys(
    ("without arguments", "a training without data", "an option that is unknown", "a missing file"), 2
)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_fork_prints_and_returns_what_a_process_does(name: str, tmp_path: Path) -> None:
    done, logs = [], []
    for forks in (True, False):
        log = tmp_path / f"{forks}.log"
        code = RUN.format(forks=forks, words=COMMANDS[name], log=log)
        words = [sys.executable, "-P", "-c", code]
        done.append(subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True))
        logs.append(log.read_text())
    status = STATUS.get(name, 0)
    assert logs[0] == logs[1]
    assert logs[0].startswith("$ ")
    assert logs[0].count("\n") > 1
    for run in done:
        assert run.stdout == f"status {status}\n"
        assert run.stderr.startswith("  a step ")
        assert ("failed" in run.stderr) == bool(status)
        assert not status or logs[0].splitlines()[-1] in run.stderr


ENDED = """
import signal, sys, time
from hat_fairseq.recipes import steps
steps.IMPORTED, steps.forks = (), lambda: True
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
out = steps.os.fdopen(steps.os.dup(1), "w")
steps.verb = lambda words: [print("begun", steps.os.getpid(), file=out, flush=True), time.sleep(60)]
steps.run_step("predict", [*steps.PYTHON, "hat_fairseq.cli", "predict"], steps.Path("{log}"), sys.stderr)
"""


def test_a_signal_ends_the_command_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", ENDED.format(log=tmp_path / "log")],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    word, number = process.stdout.readline().split()
    assert word == "begun"
    assert int(number) != process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 128 + signal.SIGTERM
    for _ in range(100):
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("the command goes on")


def test_where_there_is_a_gpu_commands_are_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(steps, "GPU", (tmp_path / "absent",))
    assert steps.forks()
    monkeypatch.setattr(steps, "GPU", (tmp_path,))
    assert not steps.forks()
