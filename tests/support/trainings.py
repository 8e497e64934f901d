"""What tests of trainings read of them: losses, checkpoints compared, and faults at a chosen moment."""

import json
import re
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from commands import REPOSITORY

from hat_fairseq.register import register

register()  # checkpoints are read, whose types the plugin allows

CURVE = re.compile(r"train_inner \| (\{.*?\})")
FAULTY = ["--user-dir", REPOSITORY / "tests/support/faulty", "--criterion", "faulty", "--fault"]
LONG = ["--max-update", 24, "--validate-interval-updates", 2]  # three updates an epoch
SHORT = ["--disable-validation", "--save-interval-updates", 1]
# fairseq starts as many processes as there are GPUs; what runs in them is all real
SPAWN = "import torch; torch.cuda.device_count = lambda: 2; import fairseq_cli.train; fairseq_cli.train.cli_main()"


def losses(result: Any) -> list[float]:
    """Of each update, from what a command printed."""
    text = result if isinstance(result, str) else result.stdout + result.stderr
    return [float(json.loads(log)["loss"]) for log in CURVE.findall(text)]


def checkpoint(folder: Path) -> dict[str, Any]:
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)


def difference(one: Any, other: Any) -> float:
    """The largest difference in the weights and states of two checkpoints."""
    if torch.is_tensor(one):
        return float((one.double() - other.double()).abs().max())
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return max((difference(one[name], other[name]) for name in one), default=0.0)
    if isinstance(one, list):
        return max((difference(*pair) for pair in zip(one, other, strict=True)), default=0.0)
    assert one == other
    return 0.0


def assert_same_result(one: Path, other: Path) -> None:
    for part in ("model", "last_optimizer_state"):
        assert difference(checkpoint(one)[part], checkpoint(other)[part]) == 0.0


def wait_for(log: Path, text: str, run: Future | None = None) -> None:
    """Until the log has the text, or the run has ended: one with all its updates has nothing to iterate over."""
    deadline = time.monotonic() + 100
    while not (log.exists() and text in log.read_text()) and not (run and run.done()):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
