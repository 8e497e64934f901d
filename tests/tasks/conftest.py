"""A training of fairseq in a process that has imported everything."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import training_words
from warm import WarmPython


@pytest.fixture
def quick(ami: Path, warm: WarmPython, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Return a function that trains and gives the exit status and the output."""

    def train(folder: Path, *flags: object, log: Path = tmp_path / "log", data: Path = ami / "bin") -> tuple[int, str]:
        log.unlink(missing_ok=True)
        return warm.status(["fairseq_cli.train", *training_words(data, folder, *flags)], tmp_path, log), log.read_text()

    return train
