"""Commands as fixtures, and a few real AMI meetings preprocessed once for all tests that train."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import ABSENT, REPOSITORY, environment, run_command, training_words
from evidence_model import EvidenceModel, train_evidence
from fine_tuned import FineTuned, fine_tune, write_meetings
from ray_cluster import cluster, head, private  # noqa: F401 fixtures
from warm import WarmPython

COMMANDS = ("train", "generate", "preprocess", "validate", "interactive")
WARM = {f"fairseq-{name}": f"fairseq_cli.{name}" for name in COMMANDS} | {"hat": "hat_fairseq.cli"}
Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def run(warm: WarmPython) -> Command:
    """Runs a command of this environment; those of `WARM` without imports, if no other option is asked for."""

    def run_any(*command: object, **options: Any) -> subprocess.CompletedProcess:
        module = WARM.get(str(command[0]))
        if module is None or not options.keys() <= {"check", "cwd"}:
            return run_command(*command, **options)
        return warm.completed(
            [module, *map(str, command[1:])], options.get("cwd", Path.cwd()), options.get("check", True)
        )

    return run_any


@pytest.fixture(scope="session")
def ami(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six meetings a split, at most 120 source and 60 target tokens, roles, BPE learned on the training part."""
    out = tmp_path_factory.mktemp("ami") / "data"
    flags = "--limit 6 --bpe learned --num-codes 300 --role-in-text --max-source-tokens 121 --max-target-tokens 61 "
    flags += "--long-source truncate --long-target truncate"
    warm.completed(["hat_fairseq.cli", "preprocess", "ami", "--out", str(out), *flags.split()], REPOSITORY)
    return out


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmPython]:
    """A process that runs commands without importing anything."""
    with WarmPython() as process:
        yield process


@pytest.fixture(scope="session")
def fine_tuned(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], FineTuned]:
    """Fine-tuned models of every kind, each made once, when it is asked for first."""
    folder = tmp_path_factory.mktemp("fine_tuned")
    write_meetings(folder)
    return cache(lambda kind: fine_tune(kind, folder, folder, warm))


@pytest.fixture(scope="session")
def evidence_model(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> EvidenceModel:
    return train_evidence(tmp_path_factory.mktemp("evidence"), warm)


@pytest.fixture(scope="session")
def without_fairseq(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs code (and its arguments) where `ABSENT` are not installed, and returns what it prints."""
    packages = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():  # links to all others
        if not re.match("|".join([*ABSENT, "hat_fairseq", "__editable__"]), path.name):
            (packages / path.name).symlink_to(path)
    options = {"env": environment(PYTHONPATH=f"{REPOSITORY}{os.pathsep}{packages}"), "cwd": packages}
    command = (sys.executable, "-S", "-c")
    return lambda code, *arguments: run_command(*command, code, *arguments, **options).stdout


@pytest.fixture(scope="session")
def train(ami: Path, warm: WarmPython) -> Command:
    """fairseq-train of a tiny model on the AMI sample; flags given later win."""

    def train_on_ami(
        save_dir: Path, *flags: object, data: Path = ami / "bin", launcher: Sequence[object] = (), check: bool = True
    ) -> subprocess.CompletedProcess:
        words = training_words(data, save_dir, *flags)
        if launcher:
            return run_command(*launcher, *words, check=check, cwd=REPOSITORY)
        return warm.completed(["fairseq_cli.train", *words], REPOSITORY, check)

    return train_on_ami


@pytest.fixture(scope="session")
def checkpoint(train: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a training of one update on the AMI sample."""
    folder = tmp_path_factory.mktemp("one_update")
    train(folder, "--max-update", 1, "--disable-validation")
    return folder / "checkpoint_last.pt"
