"""Files that are never half written."""

from __future__ import annotations

from pathlib import Path

import pytest

from hat_fairseq.data.files import atomic_file


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_text("old")
    with pytest.raises(OSError, match="No space left"), atomic_file(path) as file:
        file.write(b"ne")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with atomic_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]
