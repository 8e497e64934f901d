"""Labelled data of every kind, preprocessed once, and a process that runs commands without importing anything."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import labelled
import pytest
from commands import training_words
from warm import WarmPython

from hat_fairseq import cli
from hat_fairseq.register import register

register()  # some tests read checkpoints in this process

OPTIONS = {"qa": "--splitter punctuation", "mlm": "--max-source-tokens 201"}


@pytest.fixture(scope="session")
def data_of(ami: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The `bin` directory for a kind: 24 training examples; the test split has no labels."""
    folder = tmp_path_factory.mktemp("labelled")

    @cache
    def build(kind: str) -> Path:
        out = folder / f"{kind}-data"
        for split in ("train", "valid", "test"):
            documents = ami / f"text/{split}.jsonl"
            labelled.write(kind, documents, folder / kind / f"{split}.jsonl", labelled=split != "test")
        flags = f"--kind {kind} --out {out} --vocabulary {ami / 'bin'} --workers 1".split()
        flags += OPTIONS.get(kind, "").split()
        assert cli.main(["preprocess", str(folder / kind), *flags]) == 0
        return out / "bin"

    return build


@pytest.fixture
def quick(ami: Path, warm: WarmPython, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Return a function that trains and gives the exit status and the output."""

    def train(folder: Path, *flags: object, log: Path = tmp_path / "log", data: Path = ami / "bin") -> tuple[int, str]:
        log.unlink(missing_ok=True)
        return warm.status(["fairseq_cli.train", *training_words(data, folder, *flags)], tmp_path, log), log.read_text()

    return train
