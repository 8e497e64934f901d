"""OpenMP's threads: their number under a CPU quota, and how long they spin; torch reads both when it is imported.

A regression is fitted in one thread: its steps are so small that threads wait for each other most of the time, beside
other programs ten times as long as they compute.
"""

import math
import os
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path

# How often a thread looks for work before it sleeps; libgomp's default is 300,000. Beside busy programs threads that
# spin take the cores from the threads that they wait for.
SPINS = "3000"
CGROUP, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def limit_threads(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets `OMP_NUM_THREADS` under a CPU quota, unless the user has."""
    quota = cpu_quota()
    if "OMP_NUM_THREADS" not in environment and quota is not None and quota < (os.cpu_count() or 1):
        environment["OMP_NUM_THREADS"] = str(max(1, math.ceil(quota)))


def limit_waiting(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets `GOMP_SPINCOUNT`, unless the user has chosen how threads wait."""
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & environment.keys():
        environment["GOMP_SPINCOUNT"] = SPINS


@contextmanager
def one_thread() -> Iterator[None]:
    """Lets the libraries of linear algebra compute in one thread in the block."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def cpu_quota() -> float | None:
    """Returns how many CPUs the container's quota allows (cgroup, version 1 or 2); None: no quota."""
    quotas = []
    with suppress(OSError):
        for line in CGROUP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                # a container sees its own group as the root
                folders = [CGROUPS / (controllers and "cpu") / part for part in (path.lstrip("/"), "")]
                quotas += [quota for folder in folders if (quota := _quota(folder)) is not None]
    return min(quotas, default=None)


def _quota(folder: Path) -> float | None:
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if limit.strip() != "max" and float(limit) > 0:
            return float(limit) / float(period)
    return None
