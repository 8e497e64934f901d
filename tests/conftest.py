"""Commands as fixtures, and a few real AMI meetings preprocessed once for all tests that train."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY, run_command, training_words
from ray_cluster import cluster, head, private  # noqa: F401 fixtures
from warm import WarmPython
from without_fairseq import link_packages, run_code

WARM = {"hat": "hat_fairseq.cli", "fairseq-train": "fairseq_cli.train", "fairseq-generate": "fairseq_cli.generate"}
Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def run(warm: WarmPython) -> Command:
    """Runs a command of this environment; those of `WARM` without imports, if nothing but `check` is asked for."""

    def run_any(*command: object, **options: Any) -> subprocess.CompletedProcess:
        module = WARM.get(str(command[0]))
        if module is None or not options.keys() <= {"check"}:
            return run_command(*command, **options)
        return warm.completed([module, *map(str, command[1:])], Path.cwd(), options.get("check", True))

    return run_any


@pytest.fixture(scope="session")
def ami(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six meetings a split, at most 120 source and 60 target tokens, roles, BPE learned on the training part."""
    out = tmp_path_factory.mktemp("ami") / "data"
    limits = [
        "--limit",
        6,
        "--bpe",
        "learned",
        "--num-codes",
        300,
        "--role-in-text",
        "--max-source-tokens",
        121,
        "--max-target-tokens",
        61,
    ]
    policies = ["--long-source", "truncate", "--long-target", "truncate"]
    run_command(sys.executable, "-m", "hat_fairseq.cli", "preprocess", "ami", "--out", out, *limits, *policies)
    return out


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmPython]:
    """A process that runs commands without importing anything."""
    with WarmPython() as process:
        yield process


@pytest.fixture(scope="session")
def without_fairseq(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs code (and its arguments) where fairseq is not installed, and returns what it prints."""
    packages = link_packages(tmp_path_factory.mktemp("packages"))
    return lambda code, *arguments: run_code(code, packages, *arguments)


@pytest.fixture(scope="session")
def train(ami: Path, warm: WarmPython) -> Command:
    """fairseq-train of a tiny model on the AMI sample; flags given later win."""

    def train_on_ami(
        save_dir: Path,
        *flags: object,
        data: Path = ami / "bin",
        launcher: Sequence[object] = (),
        check: bool = True,
        cwd: Path = REPOSITORY,
    ) -> subprocess.CompletedProcess:
        words = training_words(data, save_dir, *flags)
        if launcher:
            return run_command(*launcher, *words, check=check, cwd=cwd)
        return warm.completed(["fairseq_cli.train", *words], cwd, check)

    return train_on_ami
