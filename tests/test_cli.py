"""The `hat` command: its verbs, its errors and its exit statuses, in real processes."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import HEEDING

import hat_fairseq
from hat_fairseq import cli

ROOT = Path(__file__).resolve().parents[1]
MODULE = [sys.executable, "-m", "hat_fairseq.cli"]


@pytest.mark.fault("Installation", "`hat --help` where nothing is installed", "lists every command")
def test_help_lists_every_verb_where_nothing_is_installed() -> None:
    """-S leaves out site-packages: no torch, no fairseq, no yaml."""
    command = [sys.executable, "-I", "-S", str(ROOT / "hat_fairseq" / "cli.py"), "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={"COLUMNS": "120"})
    for verb in cli.VERBS:
        assert f"\n    {verb}" in run.stdout
        assert cli.verb_help(verb)[:30] in run.stdout


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_is_there_and_keeps_to_the_interface(verb: str) -> None:
    text = cli.verb_help(verb)
    assert text != "(not part of this installation)" and text.endswith("."), f"help of {verb}: {text!r}"
    module = cli.import_verb(verb)
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    assert callable(module.main) and parser.format_help()


def test_verb_help_is_the_first_line_of_its_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["import", "--help"])
    output = " ".join(capsys.readouterr().out.split())
    assert stop.value.code == 0
    assert "Convert released weights to fairseq's checkpoint layout" in output and "HF_DIR" in output


@pytest.mark.parametrize("arguments", [[], ["no-such-verb"], ["import"], ["import", "kiddothe2b", "d", "--out", "o"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2 and "usage: hat" in capsys.readouterr().err


def test_a_mistake_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "no-such-folder"
    assert cli.main(["import", "bart", str(missing), "--out", str(tmp_path / "model.pt")]) == 2
    captured = capsys.readouterr()
    assert captured.err == f"hat: error: {missing} is not a folder\n" and captured.out == ""


def test_an_error_of_the_system_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", "bart", str(tmp_path), "--out", str(tmp_path / "model.pt")]) == 2
    assert capsys.readouterr().err == f"hat: error: {tmp_path / 'config.json'}: No such file or directory\n"


def test_a_traceback_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="is not a folder"):
        cli.main(["import", "bart", str(tmp_path / "none"), "--out", str(tmp_path / "model.pt")])


def test_messages_of_several_lines_become_one() -> None:
    assert cli.describe(ValueError("line one\n   line two")) == "line one line two"
    assert cli.describe(ValueError()) == "ValueError"
    assert cli.describe(OSError(28, "No space left on device")) == "No space left on device"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == f"hat_fairseq {hat_fairseq.__version__}\n"


@pytest.mark.fault("Installation", "Ctrl-C", "one line, exit 130")
def test_interrupt_is_status_130(tmp_path: Path) -> None:
    """config.json is a pipe nobody writes to, so the process is certainly waiting inside the verb."""
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    command = [*MODULE, "import", "bart", str(tmp_path), "--out", str(tmp_path / "model.pt")]
    process = subprocess.Popen([*HEEDING, *command], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    writer = None
    deadline = time.monotonic() + 120
    while writer is None and time.monotonic() < deadline:
        try:
            # Fails until the other side has opened the pipe for reading.
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.1)
    assert writer is not None
    stderr = ""
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):  # it came just before reading began: asleep, ask again
            _, stderr = process.communicate(timeout=5)
            break
    os.close(writer)
    assert process.returncode == 130 and stderr.endswith("hat: interrupted\n"), stderr


@pytest.mark.fault("Installation", "the reader of a pipe has gone", "no message, exit 141")
def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([*MODULE, "doctor"], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert run.returncode == 141 and "Traceback" not in run.stderr and "BrokenPipe" not in run.stderr
