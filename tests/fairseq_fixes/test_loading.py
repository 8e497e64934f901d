"""A training whose data do not come: an error or a signal ends it, with one line."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import environment, training_words
from torch.utils.data import DataLoader

from hat_fairseq.fairseq_fixes import loading
from hat_fairseq.register import register

register()  # applies the corrections


def too_many_files() -> Any:
    raise OSError(24, "Too many open files")


def no_shared_memory() -> Any:
    raise RuntimeError("unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)")


class NotSent:
    """What a process cannot send to another one."""

    def __init__(self, error: Callable[[], Any]) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        return self.error()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (no_shared_memory, "^/dev/shm is too small for a batch .*--num-workers 0.*--shm-size"),
        (
            too_many_files,
            r"^a process that loads data could not send a batch \(OSError: .*open files\): --num-workers 0",
        ),
    ],
)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_batch_that_cannot_be_sent_is_an_error(error: Callable[[], Any], message: str, workers: int) -> None:
    """The batches before it come."""
    rows = [torch.tensor(number) if number != 4 else NotSent(error) for number in range(9)]
    batches, seen = iter(DataLoader(rows, batch_size=None, num_workers=workers)), []  # type: ignore[arg-type,var-annotated]
    with pytest.raises(ValueError, match=message):
        seen.extend(batches)
    assert [int(batch) for batch in seen] == [0, 1, 2, 3]


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGBUS])
def test_the_end_of_a_process_that_loads_data_is_one_line(signum: int) -> None:
    class Ends(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            os.kill(os.getpid(), signum)

    with pytest.raises(RuntimeError) as raised:
        next(iter(DataLoader(Ends(), num_workers=1)))
    line = loading.problem_of_process(raised.value, raised.tb)
    assert line.startswith("DataLoader worker (pid")
    assert "--num-workers 0" in line
    assert "\n" not in line
    assert loading.problem_of_process(RuntimeError("another"), raised.tb) == ""


@pytest.mark.slow
@pytest.mark.fault("Training", "/dev/shm is too small for a batch", "ends; names /dev/shm and --num-workers 0")
@pytest.mark.parametrize("size", ["8k", "60k"])
def test_a_small_shared_memory(ami: Path, tmp_path: Path, size: str) -> None:
    """Too small for the semaphores of the processes, or for a batch."""
    words = [
        Path(sys.executable).parent / "fairseq-train",
        *training_words(ami / "bin", tmp_path / "ck", "--max-update", 2, "--num-workers", 1, "--batch-size", 6),
    ]
    script = f'mount -t tmpfs -o size={size} none /dev/shm || exit 77; exec timeout -k 1 100 "$@"'
    line = ["unshare", "--map-root-user", "--mount", "bash", "-c", script, "bash", *words]
    done = subprocess.run(line, capture_output=True, text=True, env=environment())
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting is not allowed")
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1, done.stderr
    assert last.startswith("hat_fairseq: error: /dev/shm is too small"), done.stderr
    assert "Traceback" not in done.stderr


WAITS = """
import signal, sys, time
import hat_fairseq.register
hat_fairseq.register.register()
from fairseq.data.iterators import BufferedIterator
from hat_fairseq.fairseq_fixes import signals

def batches():
    print("waits", flush=True)
    time.sleep(100)
    yield 1

class Sized:
    __len__ = lambda self: 1
    __iter__ = lambda self: batches()

signals.LONGEST_WAIT = 0.3
signals.watch()
if sys.argv[1] == "data":
    next(BufferedIterator(2, Sized()))
print("waits", flush=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    pass
print("updated")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("what", "status"), [("data", 128 + signal.SIGTERM), ("update", 0)])
def test_a_signal_ends_a_training_that_waits_for_data(what: str, status: int) -> None:
    """It does not end one that computes an update."""
    command = [sys.executable, "-W", "ignore", "-c", WAITS, what]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=environment()) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGTERM)
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert ("hat_fairseq: SIGTERM: stopped, because no batch of data came" in errors) == (what == "data"), errors
    assert ("updated" in printed) == (what == "update")
