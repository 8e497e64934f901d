"""`hat preprocess`, `hat generate` and `hat predict` killed at random moments and run again, until they end.

Six kills each; HAT_CHAOS=30 for more, HAT_CHAOS_SEED for other moments.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from warm import FORKS, WarmPython

from hat_fairseq.data.files import files_below
from hat_fairseq.register import register

register()  # the tests read checkpoints, whose types the plugin allows
pytestmark = pytest.mark.slow
KILLS, SEED = int(os.environ.get("HAT_CHAOS", "6")), int(os.environ.get("HAT_CHAOS_SEED", "1"))
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(
    warm: WarmPython, words: list[object], log: Path, kill_after: float | None = None, sent: int = signal.SIGKILL
) -> int:
    """Runs `hat`; the signal goes to all of its processes, as from a terminal or a scheduler."""
    process = warm.start(["hat_fairseq.cli", *map(str, words)], Path.cwd(), log)
    try:
        return warm.wait(kill_after)
    except TimeoutError:
        os.killpg(process, sent)
        return warm.wait(60)


def content(path: Path) -> dict[str, bytes]:
    """The files of a result, without the manifest, which has a date."""
    names = [name for name in files_below(path) if name != "manifest.json"] if path.is_dir() else [""]
    return {name: (path / name).read_bytes() for name in names}


def disturbed_equals_whole(
    warm: WarmPython, command: Callable[[Path], list[object]], folder: Path, log: Path, result: str = ""
) -> None:
    """Runs the command whole and, elsewhere, with kills; compares the results (a file in the folder of output)."""
    draw, outs = random.Random(SEED), [folder / "whole.jsonl"]
    begin = time.monotonic()
    assert run(warm, command(outs[0]), log) == 0, log.read_text()
    seconds, out = time.monotonic() - begin, folder / "1.jsonl"
    for number in range(KILLS):
        sent = SIGNALS[number % len(SIGNALS)]
        status = run(warm, command(out), log, draw.uniform(0.1, 1.0) * seconds, sent)
        assert status in (0, -sent, 128 + sent, 2), log.read_text()
        complete = (out / result).exists()
        assert complete or status
        if complete:  # also if it was killed after that
            outs.append(out)
            out = folder / f"{len(outs)}.jsonl"
    assert run(warm, command(out), log) == 0, log.read_text()
    assert all(content(path / result) == content(outs[0] / result) for path in [*outs, out])
    assert not list(folder.glob(".*"))


@pytest.mark.fault("Preprocessing", "killed at six random moments", "the end equals the undisturbed run byte for byte")
def test_preprocessing(warm: WarmPython, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    words = "preprocess ami --num-codes 300 --limit 20 --workers 2 --max-source-tokens 200 --long-source chunk --out"
    disturbed_equals_whole(warm, lambda out: [*words.split(), out], tmp_path, tmp_path_factory.mktemp("log") / "log")


@pytest.mark.fault("Generation and prediction", "hat generate killed at six random moments", "as undisturbed")
def test_generation(
    warm: WarmPython, ami: Path, checkpoint: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch
) -> None:
    monkeypatch.setenv(FORKS, "1")  # of 16 workers none imports anything
    flags = "--min-len 60 --max-len-b 60 --device cpu --batch-size 1 --workers 2"
    words = ["generate", checkpoint, ami, *flags.split()]
    disturbed_equals_whole(
        warm,
        lambda out: [*words, "--out", out / "test.jsonl"],
        tmp_path,
        tmp_path_factory.mktemp("log") / "log",
        "test.jsonl",
    )


@pytest.mark.fault("Generation and prediction", "hat predict killed at six random moments", "as undisturbed")
def test_prediction(warm: WarmPython, fine_tuned, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = fine_tuned("classification")
    words = ["predict", made.checkpoint, made.data, "--device", "cpu", "--batch-size", 1]
    disturbed_equals_whole(warm, lambda out: [*words, "--out", out], tmp_path, tmp_path_factory.mktemp("log") / "log")
