"""The folder of a `peer` of transformers that a test module converts, and a copy of it."""

import shutil
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def folder(peer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As save_pretrained writes it: config.json and model.safetensors."""
    path = tmp_path_factory.mktemp("peer")
    peer.save_pretrained(path)
    return path


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))
