"""`docs/draw_attention.py` draws the pictures of the pages, from the attentions as they are."""

import runpy
from pathlib import Path

import pytest
from commands import REPOSITORY


def test_the_pictures_of_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["draw_attention.py", str(tmp_path)])
    runpy.run_path(str(REPOSITORY / "docs/draw_attention.py"), run_name="__main__")
    pictures = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert pictures == {path.name: path.read_bytes() for path in (REPOSITORY / "docs").glob("attention_*.svg")}
    assert len(pictures) == 4
