"""The number of threads that `hat` sets before torch is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from hat_fairseq import threads


def test_variables_of_the_user_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for quota, user in ((None, {}), (0.5, {"OMP_NUM_THREADS": "7"})):
        monkeypatch.setattr(threads, "cpu_quota", lambda quota=quota: quota)
        threads.limit_threads(chosen := dict(user))
        assert chosen == user
    monkeypatch.setattr(threads, "cpu_quota", lambda: 1.5)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    threads.limit_threads(chosen := {})
    assert chosen == {"OMP_NUM_THREADS": "2"}


QUOTAS = [
    ("0::/", {"cpu.max": "150000 100000\n"}, 1.5),
    ("0::/jobs/7", {"cpu.max": "max 100000\n", "jobs/7/cpu.max": "50000 100000\n"}, 0.5),
    ("0::/jobs/8", {"cpu.max": "200000 100000\n", "jobs/8/cpu.max": "50000 100000\n"}, 0.5),
    ("0::/on/the/host", {"cpu.max": "200000 100000\n"}, 2.0),
    ("0::/", {"cpu.max": "max 100000\n"}, None),
    ("3:cpuset:/\n4:cpu,cpuacct:/x", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
    ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "25000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 0.25),
    ("0::/", {}, None),
]


def test_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (group, files, quota) in enumerate(QUOTAS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "group").write_text(group + "\n")
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        monkeypatch.setattr(threads, "CGROUP", folder / "group")
        monkeypatch.setattr(threads, "CGROUPS", folder)
        assert threads.cpu_quota() == quota, group
