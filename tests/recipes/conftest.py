"""A folder of recipes of a test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hat_fairseq.recipes import files


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes the recipe `new`; there is no other one."""
    monkeypatch.setattr(files, "CONFIGS", tmp_path)

    def write(text: str) -> Path:
        path = tmp_path / "new.yaml"
        path.write_text(text)
        return path

    return write
