import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hat_fairseq.workers import Workers


def slow_at_first(number: int) -> tuple[int, int]:
    """Early items take longer, so that results are ready in another order than they are wanted."""
    if number % 160 == 0:
        time.sleep(0.05)
    return number, os.getpid()


def refuse_seven(number: int) -> int:
    if number == 7:
        raise ValueError("seven is refused")
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    results = list(Workers(workers).map(slow_at_first, range(1000)))
    assert [number for number, _ in results] == list(range(1000))
    processes = {process for _, process in results}
    assert processes == {os.getpid()} if workers == 1 else os.getpid() not in processes


def kill_itself(number: int) -> int:
    if number == 700:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_one_worker_in_a_process_of_its_own() -> None:
    workers = Workers(apart=True)
    ((result, process),) = workers.map(slow_at_first, [3])
    assert result == 3
    assert process != os.getpid()
    with pytest.raises(ValueError, match="seven is refused"):
        list(workers.map(refuse_seven, [7]))
    with pytest.raises(ChildProcessError, match="a worker process was killed by signal 9; if memory ran out"):
        list(workers.map(kill_itself, [700]))


@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_worker_is_one_line(attempt: int) -> None:
    started = time.monotonic()
    with pytest.raises(ChildProcessError, match="item 701: a worker process was killed by signal 9; if memory ran out"):
        list(Workers(3).map(kill_itself, range(10_000)))
    assert time.monotonic() - started < 20
    assert not multiprocessing.active_children()


def take_a_moment(number: int) -> int:
    time.sleep(0.001)
    return number


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_a_worker_killed_at_any_time_is_one_line(delay: float) -> None:
    results = Workers(3).map(take_a_moment, range(10_000))
    next(results)
    victim = multiprocessing.active_children()[0].pid
    threading.Timer(delay, lambda: os.kill(victim, signal.SIGKILL)).start()
    with pytest.raises(ChildProcessError, match="a worker process was killed"):
        list(results)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_mistake_is_raised_and_results_before_it_come(workers: int) -> None:
    results = Workers(workers).map(refuse_seven, [*range(100, 200), 7, *range(200, 300), 7])
    assert [next(results) for _ in range(96)] == list(range(100, 196))
    with pytest.raises(ValueError, match="seven is refused"):
        list(results)


LIMITED = """
import resource, sys
from hat_fairseq.workers import Workers
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
if __name__ == "__main__":
    print(len(list(Workers(int(sys.argv[1])).map(abs, range(1000)))))
"""


@pytest.mark.parametrize(("workers", "status"), [(2, 0), (9, 1)])
def test_few_open_files_do_not_hang(tmp_path: Path, workers: int, status: int) -> None:
    (tmp_path / "limited.py").write_text(LIMITED)
    command = [sys.executable, tmp_path / "limited.py", str(workers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert done.stdout == "1000\n" if status == 0 else "Too many open files" in done.stderr


def test_little_is_read_ahead() -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for number in range(100_000):
            read = number
            yield number

    results = Workers(2).map(slow_at_first, items())  # the second worker has the others meanwhile
    assert next(results)[0] == 0
    assert read < 12
