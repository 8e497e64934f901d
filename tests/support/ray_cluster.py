"""Fixtures: a real Ray cluster whose machines are simulated on this one, with a home and a token of its own."""

import atexit
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from commands import REPOSITORY

from hat_fairseq.workers.cluster import ENVIRONMENT

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
# A lost machine counts as dead after seconds.
HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 5}
TOKEN = "0123456789abcdef" * 2  # the same for all tests: a process that has read one keeps it


@pytest.fixture(scope="module")
def private() -> Iterator[Path]:
    """A home and a folder for Ray's files; its sockets need a short path."""
    home = Path(tempfile.mkdtemp(prefix="ray"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)  # after Ray's own, which write there
    (home / ".ray").mkdir(0o700)
    (home / ".ray/auth_token").write_text(TOKEN)
    paths = {"HOME": home, "RAY_TMPDIR": home, "PYTHONPATH": ":".join([str(REPOSITORY), *sys.path])}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, **paths, "OMP_NUM_THREADS": "1"}.items():
            patch.setenv(name, str(value))
        yield home
        assert not leftover(home)


@pytest.fixture(scope="module")
def head(private: Path) -> Iterator[Any]:
    """A cluster without room."""
    from ray.cluster_utils import Cluster  # reads the environment

    cluster = Cluster(True, head_node_args={**NODE, "num_cpus": 0, "_system_config": HEALTH})
    yield cluster
    cluster.shutdown()


@pytest.fixture
def cluster(head: Any) -> Iterator[Any]:
    """A cluster to which a test adds machines."""
    yield head
    import ray

    ray.shutdown()
    for node in list(head.worker_nodes):
        head.remove_node(node, allow_graceful=False)


def leftover(folder: Path) -> list[psutil.Process]:
    """Processes of Ray with its files in a folder, after two minutes if there are any.

    A worker that was starting when its machine was lost looks for it for half a minute.
    """
    for _ in range(600):
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("RAY_TMPDIR") == str(folder) and "ray" in " ".join(process.cmdline()):
                    processes.append(process)
        if not processes:
            break
        time.sleep(0.2)
    return processes
