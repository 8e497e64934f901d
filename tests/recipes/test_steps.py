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
steps.IMPORTED, steps.forks = (), lambda: {forks}
print("status", steps.run_to_the_end([*steps.PYTHON, *{words}], quiet={quiet}), flush=True)
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
@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_fork_prints_and_returns_what_a_process_does(name: str, quiet: bool, tmp_path: Path) -> None:
    done = []
    for forks in (True, False):
        code = RUN.format(forks=forks, words=COMMANDS[name], quiet=quiet)
        words = [sys.executable, "-P", "-c", code]
        done.append(subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True))
    fork, process = done
    assert (fork.stdout, fork.stderr) == (process.stdout, process.stderr)
    assert fork.stdout.endswith(f"status {STATUS.get(name, 0)}\n")
    assert not quiet or fork.stdout.count("\n") == 1


ENDED = """
import signal, sys, time
from hat_fairseq.recipes import steps
steps.IMPORTED, steps.forks = (), lambda: True
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
steps.verb = lambda words: [print("begun", steps.os.getpid(), flush=True), time.sleep(60)]
steps.run_to_the_end([*steps.PYTHON, "hat_fairseq.cli", "predict"])
"""


def test_a_signal_ends_the_command_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", ENDED], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    word, number = process.stdout.readline().split()
    assert word == "begun" and int(number) != process.pid
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
