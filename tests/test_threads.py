"""The number of threads that `hat` sets before torch is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import REPOSITORY

from hat_fairseq import threads

SHOW = "import os; from hat_fairseq import threads; threads.limit_threads(); print(os.environ.get('OMP_NUM_THREADS'))"


def test_variables_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for quota, user in ((None, {}), (0.5, {"OMP_NUM_THREADS": "7"})):
        monkeypatch.setattr(threads, "cpu_quota", lambda quota=quota: quota)
        threads.limit_threads(chosen := dict(user))
        assert chosen == user


@pytest.mark.parametrize(
    ("group", "files", "quota"),
    [
        ("0::/", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/jobs/7", {"cpu.max": "max 100000\n", "jobs/7/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/on/the/host", {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/", {"cpu.max": "max 100000\n"}, None),
        ("3:cpuset:/\n4:cpu,cpuacct:/x", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "25000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 0.25),
        ("0::/", {}, None),
    ],
)
def test_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, files: dict, quota: float | None) -> None:
    (tmp_path / "group").write_text(group + "\n")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(threads, "CGROUP", tmp_path / "group")
    monkeypatch.setattr(threads, "CGROUPS", tmp_path)
    assert threads.cpu_quota() == quota


def test_a_real_group() -> None:
    """One thread with half a CPU."""
    group = Path(f"/sys/fs/cgroup/cpu/hat-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no right to make a group: {error}")
    try:
        (group / "cpu.cfs_quota_us").write_text("50000")
        words = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$0" -c "$1"', sys.executable, SHOW]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        environment.pop("OMP_NUM_THREADS", None)
        assert subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout == "1\n"
    finally:
        group.rmdir()
