"""Commands as fixtures, and a few real AMI meetings preprocessed once for all tests that train."""

import logging
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
from commands import ABSENT, IN_EVERY_PROCESS, REPOSITORY, environment, run_command, training_words
from evidence_model import EvidenceModel, train_evidence
from fine_tuned import FineTuned, fine_tune, write_meetings
from ray_cluster import cluster, head, private  # noqa: F401 fixtures
from warm import MODULES, WarmPython

pytest_plugins = ["skips"]

Command = Callable[..., subprocess.CompletedProcess]
# The files that take longest in `make test-all`, then in `make test`: the processes begin with them, so that all end at
# about the same time.
LONGEST = (
    "test_tutorials.py",
    "recipes/test_recipe_runs.py",
    "inference/test_generate.py",
    "tasks/test_several_processes.py",
    "tasks/test_interruptions.py",
    "test_slurm.py",
    "test_cluster_commands.py",
    "test_benchmarks.py",
    "test_studies.py",
    "test_notebook.py",
    "test_demo.py",
    "hf/test_scripts.py",
    "test_restarts.py",
    "inference/test_without_effect.py",
    "test_workers_on_ray.py",
    "test_chaos_data.py",
    "tasks/test_training.py",
    "weights/test_export_hat.py",
    "tasks/test_labelled_training.py",
    "test_page_commands.py",
    "test_base_install.py",
    "planning/test_plan.py",
    "fairseq_fixes/test_settings.py",
    "inference/test_faults.py",
    "inference/test_embed.py",
    "test_wheel.py",
    "fairseq_fixes/test_fairseq_tasks.py",
    "preprocess/test_release_readers.py",
    "hf/test_tokenizer_call.py",
    "weights/test_export_roberta.py",
    "test_readme.py",
    "data/test_option_effects.py",
    "hostile/test_hostile_files.py",
    "test_register.py",
    "inference/test_texts.py",
    "models/test_precisions.py",
    "generation/test_beam_search.py",
    "test_bad_input.py",
)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # else the files with most tests come first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.relative_to(REPOSITORY / "tests").as_posix(), len(places)))


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """Undoes that a command which runs in the process of the tests has silenced logs for good."""
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session")
def run(warm: WarmPython) -> Command:
    """Runs a command of this environment; those of `MODULES` without imports, if no other option is asked for."""

    def run_any(*command: object, **options: Any) -> subprocess.CompletedProcess:
        module = MODULES.get(str(command[0]))
        if module is None:
            options = {"env": environment(PATH=warm.programs)} | options
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
    flags = "--limit 6 --bpe learned --num-codes 300 --roles both --max-source-tokens 121 --max-target-tokens 61 "
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
    paths = os.pathsep.join(map(str, (REPOSITORY, packages, IN_EVERY_PROCESS)))
    options = {"env": environment(PYTHONPATH=paths), "cwd": packages}
    command = (sys.executable, "-S", "-c")
    return lambda code, *arguments: run_command(*command, f"import sitecustomize\n{code}", *arguments, **options).stdout


@pytest.fixture(scope="session")
def train(ami: Path, warm: WarmPython) -> Command:
    """fairseq-train of a tiny model on the AMI sample; flags given later win."""

    def train_on_ami(
        save_dir: Path, *flags: object, data: Path = ami / "bin", launcher: Sequence[object] = (), check: bool = True
    ) -> subprocess.CompletedProcess:
        words = training_words(data, save_dir, *flags)
        if launcher:
            return run_command(*launcher, *words, check=check, cwd=REPOSITORY, env=environment(PATH=warm.programs))
        return warm.completed(["fairseq_cli.train", *words], REPOSITORY, check)

    return train_on_ami


@pytest.fixture(scope="session")
def checkpoint(train: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a training of one update on the AMI sample."""
    folder = tmp_path_factory.mktemp("one_update")
    train(folder, "--max-update", 1, "--disable-validation")
    return folder / "checkpoint_last.pt"
