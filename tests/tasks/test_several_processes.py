"""fairseq-train in two processes, or on two machines, that is interrupted, or a part of which fails."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest
from commands import HEEDING, TWO_PROCESSES, environment, training_words
from trainings import FAULTY, LONG, SHORT, SPAWN, assert_same_result, checkpoint, difference, losses, wait_for
from warm import WarmPython

AREA = "Several processes and machines"
TORCHRUN = [*map(str, TWO_PROCESSES)]
SPAWNED = [sys.executable, "-c", SPAWN]
FORKED = ["train-in-forks"]  # the same, without the imports of each process
OF_SPAWNED = ["--distributed-world-size", 2, "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
OF_SPAWNED += ["--num-workers", 0, "--data-buffer-size", 0]  # their workers import everything anew


def interrupt(words: Sequence[str], search: str, folder: Path, log: Path, signum: int, whole_group: bool) -> int:
    """Sends a signal after update 5, to the launcher or to all processes; the launcher's exit status."""
    with log.open("w") as file:
        options = {"stdout": file, "stderr": file, "env": environment(PATH=search), "start_new_session": True}
        process = subprocess.Popen([*HEEDING, *words], **options)
        try:
            wait_for(log, '"num_updates": "5"')
            (os.killpg if whole_group else os.kill)(process.pid, signum)
            return process.wait(timeout=120)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def command(launcher: Sequence[str], ami: Path, path: Path) -> list[str]:
    flags = ["--disable-validation"] if launcher is TORCHRUN else OF_SPAWNED
    words = [*launcher, *training_words(ami / "bin", path, *LONG, "--batch-size", 1, *flags)]
    if launcher is not TORCHRUN:
        words.remove("--cpu")  # with it fairseq starts no processes; there is no GPU
    return words


@pytest.fixture(scope="module")
def undisturbed(ami: Path, warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The folder of a whole training by a launcher."""

    @cache
    def folder(spawned: bool) -> Path:
        path = tmp_path_factory.mktemp("whole")
        finish(command(FORKED if spawned else TORCHRUN, ami, path), warm)
        return path

    return folder


def finish(words: Sequence[str], warm: WarmPython) -> None:
    subprocess.run(words, check=True, capture_output=True, env=environment(PATH=warm.programs), timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "signum", "whole_group", "status"),
    [
        pytest.param(TORCHRUN, signal.SIGTERM, False, 1, marks=pytest.mark.fault(
            AREA, "SIGTERM to torchrun", "all processes save at the same update; the same command resumes exactly")),
        pytest.param(SPAWNED, signal.SIGTERM, False, 143, marks=pytest.mark.fault(
            AREA, "SIGTERM to fairseq-train that has started processes", "all save at the same update, exit 143")),
        pytest.param(FORKED, signal.SIGHUP, True, 129, marks=pytest.mark.fault(
            AREA, "SIGHUP from the terminal of several processes", "all save at the same update, exit 129")),
        pytest.param(FORKED, signal.SIGINT, True, 130, marks=pytest.mark.fault(
            AREA, "Ctrl-C in the terminal of several processes", "all save at the same update, exit 130")),
    ],
)  # fmt: skip
def test_all_processes_stop_after_the_same_update(
    ami, warm, undisturbed, tmp_path, launcher, signum, whole_group, status
) -> None:
    folder, log = tmp_path / "ck", tmp_path / "log"
    words = command(launcher, ami, folder)
    assert interrupt(words, warm.programs, folder, log, signum, whole_group) == status, log.read_text()[-3000:]
    name = signal.Signals(signum).name
    assert log.read_text().count(f"hat_fairseq: {name}: stopped after update") == 1
    assert 5 <= checkpoint(folder)["optimizer_history"][-1]["num_updates"] < 24
    if signum == signal.SIGTERM:  # what follows the others is the same
        finish(command(TORCHRUN if launcher is TORCHRUN else FORKED, ami, folder), warm)
        assert_same_result(folder, undisturbed(launcher is not TORCHRUN))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.fault(
            AREA, fault, "the others end within seconds, exit 1; the last checkpoint is whole"))
        for kind, fault in (("die", "a process is killed"), ("oom", "one process is out of memory"))
    ],
)  # fmt: skip
def test_a_failed_process_ends_all(train, tmp_path: Path, kind: str) -> None:
    start, flags = time.monotonic(), [*SHORT, "--max-update", 9, "--batch-size", 1, "--update-freq", 2]
    launcher = [*TWO_PROCESSES[:-1], "train-and-show"]
    result = train(tmp_path, *flags, *FAULTY, f"{kind}:1:3", launcher=launcher, check=False)
    assert result.returncode == 1
    assert time.monotonic() - start < 60
    assert kind == "die" or "CUDA out of memory" in result.stderr
    assert kind == "die" or "process group at the end: True" in result.stdout, "the launcher ends it"
    assert checkpoint(tmp_path)["optimizer_history"][-1]["num_updates"] == 1


@pytest.mark.slow
@pytest.mark.fault(AREA, "resumed with another number of processes", "continues with the samples that were not seen")
def test_another_number_of_processes_goes_on_after_the_same_samples(train, tmp_path: Path) -> None:
    """One process with two samples an update, then two processes with one each: the same run."""
    one, two = tmp_path / "one", tmp_path / "two"
    flags = [*SHORT, "--dropout", 0]
    train(one, *flags, "--max-update", 3)
    train(two, *flags, "--max-update", 2)
    train(two, *flags, "--max-update", 3, "--batch-size", 1, launcher=TWO_PROCESSES)
    state = checkpoint(two)["extra_state"]["train_iterator"]
    assert (state["epoch"], state["iterations_in_epoch"]) == (2, 0)
    assert difference(checkpoint(one)["model"], checkpoint(two)["model"]) < 1e-5  # other samples change weights by 1e-3


ONE_SAMPLE = ["--batch-size", "1", "--dropout", "0", "--disable-validation", "--save-interval-updates", "1"]


def start_machines(search: str, data: Path, folder: Path, port: int, *flags: str) -> list[subprocess.Popen[str]]:
    """torchrun for each of two machines, which have one address; the first one is the meeting point."""
    processes = []
    for number in range(2):
        rendezvous = f"--rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{port} --local-addr 127.0.0.1"
        launcher = f"-m torch.distributed.run --nnodes 2 --nproc-per-node 1 {rendezvous}"
        launcher += f" --rdzv-conf is_host={1 - number} --no-python fairseq-train"
        words = [sys.executable, *launcher.split(), *training_words(data, folder, *ONE_SAMPLE, *flags)]
        variables = environment(PATH=search, GLOO_SOCKET_IFNAME="lo")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        processes.append(subprocess.Popen(words, env=variables, text=True, start_new_session=True, **pipes))
    return processes


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of torchrun and of what it has started."""
    for task in Path(f"/proc/{process.pid}/task").glob("*/children"):
        for child in task.read_text().split():
            os.kill(int(child), signal.SIGKILL)
    process.kill()


@pytest.mark.slow
@pytest.mark.fault(
    AREA,
    "training: a machine is lost (kill -9)",
    "the other ends, not with 0; started again, they resume from the last checkpoint",
)
def test_two_machines_are_one_process_and_go_on_when_one_was_lost(
    ami: Path, train, warm: WarmPython, tmp_path: Path
) -> None:
    """Each update is that of one process with the whole batch."""
    port, flags = 29600 + os.getpid() % 300, ["--max-update", "24"]
    one = losses(train(tmp_path / "one", *ONE_SAMPLE, *flags, "--update-freq", 2))
    processes = start_machines(warm.programs, ami / "bin", tmp_path / "two", port, *flags)
    try:
        while not (tmp_path / "two/checkpoint_last.pt").exists():
            assert all(process.poll() is None for process in processes)
            time.sleep(0.05)
        kill(processes[1])
        output = processes[0].communicate(timeout=100)[0]
        assert processes[0].returncode > 0
        before = losses(output)
        processes = start_machines(warm.programs, ami / "bin", tmp_path / "two", port + 1, *flags)
        output = processes[0].communicate(timeout=100)[0]
        assert [process.wait(120) for process in processes] == [0, 0]
    finally:
        for process in processes:
            kill(process)
    after = losses(output)
    assert 1 <= 24 - len(after) <= len(before) + 1 < 24  # it was killed after the save of an update, or before its log
    assert before == pytest.approx(one[: len(before)], abs=2e-3)
    assert after == pytest.approx(one[-len(after) :], abs=2e-3)
