"""How OpenMP's threads wait for each other, and how many there are: variables that torch reads when it is imported.

In GNU's OpenMP a waiting thread spins for a long time before it sleeps. Beside other busy processes, the thread that it
waits for may have no core, and the spinning thread occupies the core that it needs.
"""

import math
import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

SPINS = 3000  # turns of the waiting loop, about the wait between two kernels; then the thread sleeps
CGROUP, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def choose_waiting(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets `GOMP_SPINCOUNT`, and under a CPU quota `OMP_NUM_THREADS`; variables of the user stay as they are."""
    if not environment.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
        environment["GOMP_SPINCOUNT"] = str(SPINS)
    quota = cpu_quota()
    if "OMP_NUM_THREADS" not in environment and quota is not None and quota < (os.cpu_count() or 1):
        environment["OMP_NUM_THREADS"] = str(max(1, math.ceil(quota)))


def cpu_quota() -> float | None:
    """How many CPUs this process may use, by the quota of its container (cgroup, version 1 or 2); None: no quota."""
    found = []
    with suppress(OSError):
        for line in CGROUP.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                # a container sees its own group as the root
                folders = [CGROUPS / (controllers and "cpu") / part for part in (path.lstrip("/"), "")]
                found += [quota for folder in folders if (quota := _quota(folder)) is not None]
    return min(found, default=None)


def _quota(folder: Path) -> float | None:
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if limit.strip() != "max" and float(limit) > 0:
            return float(limit) / float(period)
    return None
