"""Commands as fixtures, and a few real AMI meetings preprocessed once for all tests that train."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from commands import USER_DIR, run_command

Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def run() -> Command:
    return run_command


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
def train(ami: Path) -> Command:
    """fairseq-train of a tiny model on the AMI sample; flags given later win."""

    def train_on_ami(
        save_dir: Path, *flags: object, data: Path = ami / "bin", launcher: Sequence[object] = (), **options: object
    ) -> subprocess.CompletedProcess:
        common = "--task document_to_text --arch hat_transformer_tiny --role-stream role --max-source-positions 128 "
        common += (
            "--criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --lr 1e-3 --cpu "
        )
        common += "--batch-size 2 --log-format json --log-interval 1 --num-workers 1 --no-epoch-checkpoints --seed 3"
        command = [
            *(launcher or ["fairseq-train"]),
            data,
            "--user-dir",
            USER_DIR,
            *common.split(),
            "--save-dir",
            save_dir,
            *flags,
        ]
        return run_command(*command, **options)

    return train_on_ami
