"""The log of fairseq-train with the plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import run_command, training_words


@pytest.mark.slow
def test_the_log_is_short_and_says_how_long_the_training_takes(ami: Path, tmp_path: Path) -> None:
    flags = ["--log-format", "simple", "--max-update", 5, "--no-save", "--disable-validation", "--weight-decay", 0.125]
    result = run_command("fairseq-train", *training_words(ami / "bin", tmp_path, *flags))
    lines = result.stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if "| train_inner |" in line)
    assert first < 24 and max(map(len, lines)) < 1000 and result.stderr == ""
    assert any("settings: " in line and "--weight-decay 0.125" in line for line in lines)
    left = [float(match[1]) for line in lines if (match := re.search(r"train_inner .* minutes_left=([\d.]+)", line))]
    assert len(left) == 5 and left[-1] == 0
