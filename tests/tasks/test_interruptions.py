"""fairseq-train that is interrupted, by signals, by death or by a full disk, and what a second start does."""

import contextlib
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from commands import WITHOUT_LOCKS, training_words
from trainings import FAULTY, LONG, SHORT, assert_same_result, checkpoint, wait_for


def process_of(folder: Path) -> int:
    return int(re.findall(r"process (\d+)", (folder / "training.lock").read_text())[0])


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


@pytest.fixture(scope="module")
def whole(ami: Path, warm, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    warm.run(["fairseq_cli.train", *training_words(ami / "bin", folder, *LONG)], folder, folder / "log")
    return folder


@pytest.mark.fault(
    "Training",
    "SIGTERM, SIGHUP, Ctrl-C, SIGUSR1, SIGUSR2 or SIGXCPU to a training",
    "the update is finished, checkpoint_last.pt written, exit 128 + the number of the signal; the same command resumes "
    "exactly",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status"),
    [("SIGTERM", 143), ("SIGHUP", 129), ("SIGUSR1", 138), ("SIGUSR2", 140), ("SIGXCPU", 152), ("SIGINT", 130)],
)
def test_a_signal_saves_and_the_same_command_goes_on(quick, background, whole, tmp_path, name, status) -> None:
    """The processes that load data get it, too, as from Slurm and from a terminal."""
    folder, log = tmp_path / "ck", tmp_path / "log"
    run = background.submit(quick, folder, *LONG)
    wait_for(log, '"num_updates": "7"')
    process = process_of(folder)
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    blocked = [int(Path(f"/proc/{pid}/status").read_text().split("SigBlk:")[1].split()[0], 16) for pid in children]
    bit = 1 << getattr(signal, name) - 1
    assert any(mask & bit for mask in blocked), "one that has begun to load data"
    for pid in [*map(int, children), process]:
        os.kill(pid, getattr(signal, name))
    assert run.result()[0] == status
    output = run.result()[1]
    line = rf"hat_fairseq: {name}: stopped after update (\d+), which is in {folder}; the same command resumes"
    stopped = re.fullmatch(line, output.strip().splitlines()[-1])
    assert stopped
    assert "Traceback" not in output
    assert "DataLoader worker" not in output
    assert checkpoint(folder)["optimizer_history"][-1]["num_updates"] == int(stopped[1]) < 24
    assert quick(folder, *LONG)[0] == 0
    assert_same_result(folder, whole)
    assert "nothing to train" in quick(folder, *LONG)[1]  # fairseq trains one more update
    assert_same_result(folder, whole)


@pytest.mark.slow
@pytest.mark.fault(
    "Training", "a training with --patience is interrupted", "it continues to count, and stops as if it were not"
)
def test_early_stopping_goes_on_counting(quick, tmp_path: Path) -> None:
    """Nothing is learned, so the first validation is the best one."""
    words = ["--lr", "1e-30", "--validate-interval-updates", "2", "--save-interval-updates", "2"]

    def updates(*flags: object) -> tuple[int, str]:
        status, output = quick(tmp_path, *words, *flags)
        assert status == 0
        return checkpoint(tmp_path)["optimizer_history"][-1]["num_updates"], output

    assert updates("--patience", 3, "--max-update", 4)[0] == 4  # validations after updates 2, 3 and 4
    number, output = updates("--patience", 3, "--max-update", 60)
    assert number == 6
    assert "hasn't improved for last 3 runs" in output
    again, output = updates("--patience", 3, "--max-update", 60)
    assert again == 6
    assert "there were 3 validations in a row without a better one: nothing to train" in output
    assert updates("--patience", 4, "--max-update", 60)[0] == 8
    other = ["--patience", 2, "--best-checkpoint-metric", "ppl"]
    assert updates(*other, "--max-update", 60)[0] == 12, "10 is the best by another metric"
    assert updates("--max-update", 14)[0] == 14
    number, output = updates(*other, "--max-update", 60)
    assert number > 14
    assert "nothing to train" not in output, "without --patience nothing was counted"
    number, output = updates(*other, "--max-update", 60, "--reset-meters")
    assert "nothing to train" not in output


@pytest.mark.slow
def test_early_stopping_of_another_training_does_not_count(quick, tmp_path: Path) -> None:
    words = ["--lr", "1e-30", "--validate-interval-updates", "2", "--patience", 1]
    first, log = tmp_path / "first", "hasn't improved for last 1 runs"
    assert log in quick(first, *words)[1]
    assert "nothing to train" in quick(first, *words)[1]
    last = ["--restore-file", first / "checkpoint_last.pt"]
    for number, flags in enumerate((last, [*last, "--reset-dataloader"], ["--finetune-from-model", last[1]])):
        assert log in quick(tmp_path / f"{number}", *words, *flags)[1]


@pytest.mark.slow
@pytest.mark.fault("Training", "SIGHUP to a training under nohup", "it continues")
def test_nohup(train, background, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("fairseq-train")
    log = tmp_path / "train.log"
    run = background.submit(train, tmp_path, *LONG, "--log-file", log, launcher=["nohup", command])
    wait_for(log, '"num_updates": "3"')
    os.kill(process_of(tmp_path), signal.SIGHUP)
    assert run.result().returncode == 0
    assert checkpoint(tmp_path)["optimizer_history"][-1]["num_updates"] == 24


@pytest.mark.slow
@pytest.mark.fault("Training", "a second signal", "the process ends at once; exit 143")
def test_a_second_signal_stops_at_once(quick, background, tmp_path: Path) -> None:
    folder, log = tmp_path / "ck", tmp_path / "log"
    run = background.submit(quick, folder, "--max-update", 3, *FAULTY, "sleep:0:2")
    wait_for(log, '"num_updates": "1"')
    time.sleep(0.5)
    for _ in range(2):
        os.kill(process_of(folder), signal.SIGTERM)
        time.sleep(1.5)
    assert run.result(timeout=120)[0] == 143


@pytest.mark.slow
@pytest.mark.fault("Training", "a training is started in the --save-dir of another", "refused; names the process")
def test_one_training_for_a_save_dir_and_no_lock_stays(train, quick, background, tmp_path: Path) -> None:
    folder, log = tmp_path / "ck", tmp_path / "log"
    first = background.submit(quick, folder, "--max-update", 3, *FAULTY, "sleep:0:2")
    wait_for(log, '"num_updates": "1"')
    process = process_of(folder)
    second = train(folder, "--max-update", 3, launcher=["fairseq-train"], check=False)
    os.kill(process, signal.SIGKILL)
    assert second.returncode == 1
    line = f"hat_fairseq: error: --save-dir {folder}: another training (process {process} on "
    assert second.stderr.splitlines()[-1].startswith(line)
    assert first.result()[0] == -signal.SIGKILL
    assert quick(folder, "--max-update", 1, "--disable-validation")[0] == 0


@pytest.mark.slow
@pytest.mark.fault("Training", "training.lock or a file of another training's checkpoint is a link", "its target stays")
def test_links_are_not_followed(quick, tmp_path: Path) -> None:
    (folder := tmp_path / "ck").mkdir()
    (mine := tmp_path / "mine").write_text("mine")
    short = [*SHORT, "--max-update", 1]
    for make in ((folder / "training.lock").symlink_to, (folder / "training.lock").hardlink_to):
        make(mine)
        status, output = quick(folder, *short)
        line = f"error: --save-dir {folder}: {folder}/training.lock is a link or no regular file: remove it"
        assert status == 1
        assert output.splitlines()[-1].endswith(line)
        assert mine.read_text() == "mine"
        (folder / "training.lock").unlink()
    (folder / "training.lock").write_text("my own notes")
    (folder / "checkpoint_last.pt.tmp").symlink_to(mine)
    assert quick(folder, *short)[0] == 0
    assert (folder / "training.lock").read_text() == "my own notes"
    assert mine.read_text() == "mine"
    assert checkpoint(folder)["optimizer_history"][-1]["num_updates"] == 1


@pytest.mark.slow
@pytest.mark.fault("Training", "a file system without locks", "a warning")
def test_no_locks(train, tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("fairseq-train")
    done = train(tmp_path, "--max-update", 1, "--disable-validation", launcher=[*WITHOUT_LOCKS, command])
    assert f"{tmp_path}: files cannot be locked (Function not implemented)" in done.stdout + done.stderr


@pytest.fixture(scope="module")
def three(ami: Path, warm, tmp_path_factory) -> Path:
    """A run of two updates with checkpoint_1_1.pt, checkpoint_1_2.pt and checkpoint_last.pt, in the first epoch."""
    folder = tmp_path_factory.mktemp("three")
    words = training_words(ami / "bin", folder, *SHORT, "--max-update", 2)
    warm.run(["fairseq_cli.train", *words], folder, folder / "log")
    return folder


@pytest.fixture
def folder(three: Path, tmp_path: Path) -> Path:
    """A copy of that run, to go on with."""
    return shutil.copytree(three, tmp_path / "ck")


def flip(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :]


@pytest.mark.slow
@pytest.mark.fault(
    "Checkpoints", "checkpoint_last.pt is removed, or damaged", "the newest whole checkpoint is taken and named"
)
@pytest.mark.parametrize("is_removed", [True, False])
def test_the_newest_whole_checkpoint_is_taken(quick, folder: Path, is_removed: bool) -> None:
    last, newest = folder / "checkpoint_last.pt", folder / "checkpoint_1_2.pt"
    if is_removed:
        last.unlink()
    for path in () if is_removed else (last, newest):
        path.write_bytes(flip(path.read_bytes()))
    taken = "checkpoint_1_2.pt, after update 2" if is_removed else "checkpoint_1_1.pt, after update 1"
    status, output = quick(folder, *SHORT, "--max-update", 1)
    assert status == 0
    assert f"{last} is {'missing' if is_removed else 'broken ('}" in output
    assert f"resumes from {folder}/{taken}\n" in output
    assert "nothing to train" in output


@pytest.mark.slow
@pytest.mark.fault("Checkpoints", "all checkpoints of --save-dir are broken", "refused, exit 1")
def test_a_training_does_not_begin_anew_over_broken_checkpoints(quick, folder: Path) -> None:
    for path in folder.glob("*.pt"):
        path.write_bytes(b"")
    status, output = quick(folder, *SHORT)
    message = "and no other is whole: copy one there, or choose another --save-dir"
    assert status == 1
    assert output.strip().endswith(message)


OTHER = "continues with the samples of the epoch that were not seen"


@pytest.mark.slow
@pytest.mark.fault("Training", "resumed with another --batch-size, --max-tokens or --seed", OTHER)
@pytest.mark.parametrize(
    "flags", [["--batch-size", 1], ["--max-tokens", 130, "--batch-size", 1], ["--seed", 7]], ids=lambda flags: flags[0]
)
def test_other_batches_go_on_after_the_same_samples(quick, folder: Path, flags: list) -> None:
    """Two updates of two samples each were made, of six; the others are in two batches."""
    before = checkpoint(folder)["extra_state"]["train_iterator"]
    assert quick(folder, *SHORT, "--max-update", 3, *flags)[0] == 0
    after = checkpoint(folder)["extra_state"]["train_iterator"]
    seen = [np.unpackbits(state["position"]["seen"].numpy()) for state in (before, after)]
    assert [int(bits.sum()) for bits in seen] == [4, 5]
    assert (seen[0] & seen[1]).sum() == 4
    assert quick(folder, *SHORT, "--max-update", 4, *flags)[0] == 0  # also from a place in new batches
    assert checkpoint(folder)["extra_state"]["train_iterator"]["epoch"] == 2


@pytest.mark.slow
@pytest.mark.fault("Training", "resumed on other data", "refused; names --reset-dataloader")
def test_other_data_are_refused(quick, folder: Path, ami: Path, tmp_path: Path) -> None:
    data = shutil.copytree(ami / "bin", tmp_path / "bin")
    path = data / "train.source-target.source.bin"
    path.write_bytes(path.read_bytes()[:-4] + path.read_bytes()[:2] + path.read_bytes()[-2:])  # another word
    status, output = quick(folder, *SHORT, "--max-update", 3, data=data)
    assert status == 1
    assert "lost: --reset-dataloader starts with epoch 1 of these data" in output.splitlines()[-1]
    assert quick(folder, *SHORT, "--max-update", 3, "--reset-dataloader", data=data)[0] == 0


@pytest.mark.slow
@pytest.mark.fault("Training", "the disk is full when a checkpoint is saved", "names the file; older checkpoints stay")
def test_a_full_disk_names_the_file_and_keeps_the_older_one(train, folder: Path) -> None:
    """A limit of the size of files stops the save half-way."""
    before = (folder / "checkpoint_last.pt").read_bytes()
    launcher = ["bash", "-c", 'ulimit -f 2000; exec "$@"', "limited", Path(sys.executable).parent / "fairseq-train"]
    result = train(folder, *SHORT, "--max-update", 3, launcher=launcher, check=False)
    assert result.returncode == 1
    line = rf"hat_fairseq: error: {folder}/checkpoint_last.pt could not be written \(.*File too large.*\); a checkpoint"
    assert re.match(line, result.stderr.splitlines()[-1]), result.stderr[-2000:]
    assert (folder / "checkpoint_last.pt").read_bytes() == before
    assert not list(folder.glob(".*"))


@pytest.mark.slow
@pytest.mark.fault("Training", "killed, stopped and interrupted at random moments", "the same command resumes exactly")
def test_chaos(quick, background, whole: Path, tmp_path: Path) -> None:
    """Ten times, or `HAT_CHAOS`; a training is also hit while it starts, validates and saves."""
    draw, folder, log = random.Random(int(os.environ.get("HAT_CHAOS_SEED", 1))), tmp_path / "ck", tmp_path / "log"
    hits, rounds = 0, int(os.environ.get("HAT_CHAOS", 10))
    while hits < rounds:
        log.unlink(missing_ok=True)
        run = background.submit(quick, folder, *LONG, "--save-interval-updates", 1, "--keep-interval-updates", 2)
        wait_for(log, "Start iterating", run)
        time.sleep(draw.random() * 2)
        if not run.done():
            signum = draw.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_of(folder), signum)
            hits += 1
        status = run.result()[0]
        assert status in (0, 143, 130, -signal.SIGKILL), run.result()[1][-2000:]
        if status == 0:
            assert_same_result(folder, whole)
            shutil.rmtree(folder)
    quick(folder, *LONG, "--save-interval-updates", 1)
    assert_same_result(folder, whole)
