"""Processes and precision: the decisions as functions of the facts, and real runs on CPUs."""

import sys
from pathlib import Path

import pytest
from commands import run_command

from hat_fairseq.fairseq_fixes.launching import check_world_size, started_processes

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "16", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
SLURM = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2", "SLURM_NTASKS": "2"}


@pytest.mark.parametrize(
    ("environment", "port", "started"),
    [
        ({}, 0, None),
        ({}, 12345, None),
        ({"WORLD_SIZE": "2", "RANK": "0"}, 0, None),  # half of it: something else's
        (TORCHRUN, 0, ("torchrun", 16)),
        (SLURM, 0, None),  # fairseq looks at Slurm only with a port
        (SLURM, 12345, ("Slurm", 16)),  # a task on each node, which takes its 8 GPUs
        (SLURM | {"SLURM_NTASKS": "8"}, 12345, ("Slurm", 8)),
        (SLURM | {"SLURM_NTASKS_PER_NODE": "4"}, 12345, ("Slurm", 8)),
    ],
)
def test_who_has_started_how_many(environment: dict[str, str], port: int, started: tuple[str, int] | None) -> None:
    assert started_processes(environment, port, gpus=8) == started


@pytest.mark.parametrize(
    ("asked", "explicit", "started", "gpus"),
    [
        (8, True, None, 8),
        (1, True, None, 8),
        (1, True, None, 0),  # one process finds no GPU and takes the CPU, as fairseq does
        (16, True, ("torchrun", 16), 8),
        (8, False, ("torchrun", 16), 8),  # fairseq's default is this machine's GPUs: nobody has asked for 8
    ],
)
def test_a_run_has_the_processes_that_it_is_meant_for(
    asked: int, explicit: bool, started: tuple[str, int] | None, gpus: int
) -> None:
    check_world_size(asked, explicit, started, gpus)


@pytest.mark.parametrize(
    ("asked", "started", "gpus", "message"),
    [
        (8, None, 1, r"the run is for 8 GPUs and this machine has 1, .*--gpus 1\), or start 8 processes by torchrun"),
        (2, None, 0, r"the run is for 2 GPUs and this machine has none, .*--gpus 1\)"),
        (8, ("torchrun", 4), 4, r"torchrun has started 4 processes and the run is for 8: start 8, .*--gpus 4\)"),
        (8, ("torchrun", 1), 4, "torchrun has started 1 process and"),
        (8, ("Slurm", 16), 8, "Slurm has started 16 processes and the run is for 8"),
    ],
)
def test_another_number_of_processes_is_refused(
    asked: int, started: tuple[str, int] | None, gpus: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_world_size(asked, True, started, gpus)


@pytest.mark.slow
def test_torchrun_starts_a_recipe_and_has_to_start_as_many_as_it_says(ami: Path, tmp_path: Path, monkeypatch) -> None:
    """torchrun --no-python hat recipe train NAME, two processes on the CPU."""
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin/ami_small").symlink_to(ami)
    words = [Path(sys.executable).parent / "hat", "recipe", "train", "ami_small"]
    launcher = ["torchrun", "--standalone", "--nproc-per-node", 2, "--no-python", *words, "--cpu"]
    flags = ["--max-update", 2, "--batch-size", 1, "--no-save", "--disable-validation"]
    flags += ["--log-format", "json", "--log-interval", 1]
    result = run_command(*launcher, "--gpus", 2, *flags, cwd=tmp_path)
    assert result.stdout.count("# 2 processes x 1 document x 2 = 4 documents an update\n") == 1
    output = result.stdout + result.stderr
    assert "training on 2 devices" in output
    assert '"num_updates": "2"' in output
    refused = run_command(*launcher, "--gpus", 4, *flags, cwd=tmp_path, check=False)
    assert refused.returncode
    assert "torchrun has started 2 processes and the run is for 4" in refused.stderr
