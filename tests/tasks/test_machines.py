"""Training by two launchers, as on two machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import REPOSITORY, training_words
from test_training import CURVE, losses

TRAINING = ["--batch-size", "1", "--dropout", "0", "--disable-validation", "--save-interval-updates", "1"]


def start(data: Path, folder: Path, port: int, *flags: str) -> list[subprocess.Popen[str]]:
    """torchrun for each of two machines, which have one address; the first one is the meeting point."""
    processes = []
    for number in range(2):
        rendezvous = f"--rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port} --local-addr 127.0.0.1"
        launcher = (
            f"-m torch.distributed.run --nnodes 2 --nproc-per-node 1 {rendezvous} --rdzv-conf is_host={1 - number}"
        )
        launcher += " -m fairseq_cli.train"
        words = [sys.executable, *launcher.split(), *training_words(data, folder, *TRAINING, *flags)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(REPOSITORY),
            "GLOO_SOCKET_IFNAME": "lo",
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        processes.append(subprocess.Popen(words, env=environment, text=True, start_new_session=True, **pipes))
    return processes


def losses_in(output: str) -> list[float]:
    return [float(json.loads(log)["loss"]) for log in CURVE.findall(output)]


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of torchrun and of what it has started."""
    for task in Path(f"/proc/{process.pid}/task").glob("*/children"):
        for child in task.read_text().split():
            os.kill(int(child), signal.SIGKILL)
    process.kill()


@pytest.mark.slow
@pytest.mark.fault(
    "Several processes and machines",
    "training: a machine is lost (kill -9)",
    "the other ends, not with 0; started again, they go on from the last checkpoint",
)
def test_two_machines_are_one_process_and_go_on_when_one_was_lost(ami: Path, train, tmp_path: Path) -> None:
    """Each update is that of one process with the whole batch."""
    port, flags = 29600 + os.getpid() % 300, ["--max-update", "40"]
    one = losses(train(tmp_path / "one", *TRAINING, *flags, "--update-freq", 2))
    processes = start(ami / "bin", tmp_path / "two", port, *flags)
    try:
        while not (tmp_path / "two/checkpoint_last.pt").exists():
            assert all(process.poll() is None for process in processes)
            time.sleep(0.05)
        kill(processes[1])
        output = processes[0].communicate(timeout=100)[0]
        assert processes[0].returncode > 0
        before = losses_in(output)
        processes = start(ami / "bin", tmp_path / "two", port + 1, *flags)
        output = processes[0].communicate(timeout=100)[0]
        assert [process.wait(120) for process in processes] == [0, 0]
    finally:
        for process in processes:
            kill(process)
    after = losses_in(output)
    assert 1 <= 40 - len(after) <= len(before) + 1 < 40  # it was killed after the save of an update, or before its log
    assert before == pytest.approx(one[: len(before)], abs=2e-3)
    assert after == pytest.approx(one[-len(after) :], abs=2e-3)
