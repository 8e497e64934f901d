"""`Workers` on a real Ray cluster: the results of one process, whatever dies."""

import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import REPOSITORY
from ray_cluster import NODE

from hat_fairseq.data.blocks import Block, Blocks, Task
from hat_fairseq.workers import Workers

AREA = "Several processes and machines"
pytestmark = pytest.mark.slow


class Item(NamedTuple):
    number: int
    deaths: Path  # one byte for each
    most_deaths: int = 0

    @property
    def name(self) -> str:
        return f"document {self.number}"


def square(item: Item) -> tuple[int, int]:
    """The square of a number, and the process; ends its process `most_deaths` times."""
    time.sleep(0.02)
    if item.number < 0:
        raise ValueError(f"{item.number} is negative")
    if item.most_deaths > (item.deaths.stat().st_size if item.deaths.exists() else 0):
        with item.deaths.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return item.number**2, os.getpid()


def numbers(results: Iterator[tuple[int, int]]) -> list[int]:
    return [number for number, _ in results]


def test_order_values_and_mistakes(cluster: Any, tmp_path: Path) -> None:
    for _ in range(2):
        cluster.add_node(**NODE)
    items = [Item(number, tmp_path / "deaths") for number in range(40)]
    with Workers(2, cluster.address) as workers:
        results = [list(workers.map(square, items)) for _ in range(3)]
        processes = [{process for _, process in each} for each in results]
        assert all([number for number, _ in each] == numbers(map(square, items)) for each in results)
        assert len(processes[0]) == 2
        assert processes[0] == processes[1] == processes[2]
        with pytest.raises(ValueError, match=r"^-3 is negative$") as raised:
            list(workers.map(square, [*items, Item(-3, tmp_path)]))
        assert raised.type is ValueError
        assert numbers(workers.map(square, items)) == numbers(map(square, items))


@pytest.mark.fault(AREA, "kill -9 of a worker on a cluster", "another one does its item again: the same results")
def test_a_killed_worker(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(**{**NODE, "num_cpus": 2})
    items = [Item(number, tmp_path / "deaths", int(number == 10)) for number in range(40)]
    with Workers(2, cluster.address) as workers:
        assert numbers(workers.map(square, items)) == [number**2 for number in range(40)]
    assert (tmp_path / "deaths").read_text() == "x"


@pytest.mark.fault(AREA, "a machine of the cluster is lost", "the others do its items again: the same results")
def test_a_lost_machine(cluster: Any, tmp_path: Path) -> None:
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    items = (Item(number, tmp_path / "deaths") for number in count())
    with Workers(2, cluster.address) as workers:
        results = workers.map(square, items)
        first = [next(results)]
        while len({process for _, process in first}) == 1:  # the other one has not started yet
            first.append(next(results))
        cluster.remove_node(nodes[1], allow_graceful=False)
        after = [next(results) for _ in range(100)]
        assert numbers(iter(first + after)) == [number**2 for number in range(len(first + after))]


@pytest.mark.fault(AREA, "an item that ends its worker each time", "the third death names it; results before it came")
def test_a_poison_item(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(**{**NODE, "num_cpus": 2})
    items = [Item(number, tmp_path / "deaths", 9 * int(number == 5)) for number in range(10)]
    with Workers(2, cluster.address) as workers:
        results = workers.map(square, items)
        assert [next(results)[0] for _ in range(5)] == [0, 1, 4, 9, 16]
        with pytest.raises(ChildProcessError, match="^document 5 has ended 3 workers: a worker died on the cluster"):
            next(results)
    assert (tmp_path / "deaths").read_text() == "xxx"


def test_waiting_for_room(cluster: Any, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("hat_fairseq.workers.cluster.SECONDS_BETWEEN_NOTES", 0.5)
    with Workers(1, cluster.address) as workers, ThreadPoolExecutor() as threads:
        results = threads.submit(list, workers.map(square, [Item(7, tmp_path / "deaths")]))
        time.sleep(3)
        cluster.add_node(**NODE)
        assert numbers(results.result(60)) == [49]
    assert "waiting for a worker: the cluster has no room for 1" in capsys.readouterr().err


def edited(folder: Path) -> None:
    shutil.copytree(REPOSITORY / "hat_fairseq", folder / "hat_fairseq")
    with (folder / "hat_fairseq/data/bpe.py").open("a") as file:
        file.write("# edited\n")


def other_torch(folder: Path) -> None:
    (folder / "torch-9.9.dist-info").mkdir(parents=True)
    (folder / "torch-9.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edited, r"has hat_fairseq (\S+) \(sources (\w+)\), this machine has \1 \(sources (?!\2)\w+\)"),
        (other_torch, r"has torch 9\.9, this machine has \d+\.\d+\.\d+"),
    ],
)
@pytest.mark.fault(AREA, "a machine with other sources or another torch", "refused; names machine, package, versions")
def test_another_environment(cluster: Any, tmp_path: Path, change: Callable[[Path], None], message: str) -> None:
    change(tmp_path / "other")
    paths = f"{tmp_path}/other:{os.environ['PYTHONPATH']}"
    cluster.add_node(**NODE, env_vars={"PYTHONPATH": paths})
    with Workers(1, cluster.address) as workers, pytest.raises(ValueError) as raised:
        list(workers.map(square, [Item(1, tmp_path)]))
    assert re.search(f"^{socket.gethostname()} {message}: install the same on both$", str(raised.value))


@pytest.mark.fault(AREA, "a machine without the current folder", "refused; names the machine and the folder")
def test_a_machine_without_the_folder(cluster: Any, tmp_path: Path, monkeypatch) -> None:
    cluster.add_node(**NODE)
    (current := tmp_path / "current").mkdir()
    monkeypatch.chdir(current)

    def items() -> Iterator[int]:
        current.rmdir()  # before a worker has started
        yield 1

    with Workers(1, cluster.address) as workers, pytest.raises(ValueError, match=f"has no folder {current}: start"):
        list(workers.map(abs, items()))


def parts(content: str) -> Block:
    return Block(records=content)


@pytest.mark.fault(AREA, "a machine that does not share the folder of blocks", "one line that names the missing file")
def test_a_folder_that_is_not_shared(cluster: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("hat_fairseq.data.blocks.SECONDS_FOR_FILES", 1)
    cluster.add_node(**NODE)
    for name in ("worker", "driver"):
        (tmp_path / name / "blocks").mkdir(parents=True)
    with Workers(1, cluster.address) as workers:
        monkeypatch.chdir(tmp_path / "worker")
        assert list(workers.map(abs, [-1])) == [1]
        monkeypatch.chdir(tmp_path / "driver")  # the worker stays: the same path is another folder
        with pytest.raises(ValueError, match="a worker has written, is not here: use a folder of all machines"):
            list(Blocks(Path("blocks"), workers).map(parts, [Task("digest", "text", "block 1")]))
    assert len(list((tmp_path / "worker/blocks").glob("*.zip"))) == 1
