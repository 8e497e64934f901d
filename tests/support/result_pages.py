"""What a page of results promises, of the benchmarks and of the studies."""

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
import pytest

Record = dict[str, Any]


def named(records: Sequence[Record]) -> list[Any]:
    """The records that have a summary, as parameters of a test that are called like their commands."""
    return [pytest.param(record, id=record["command"].partition("/")[2]) for record in records if "summary" in record]


def assert_summary(folder: Path, record: Record) -> None:
    if "reference" in record:
        assert record["summary"] == harness.summary(record["runs"], record["reference"])
    else:
        module = runpy.run_path(str(folder / f"{record['question']}.py"))
        assert record["summary"] == module["summary"](record["runs"])


def scripts_of(folder: Path) -> set[str]:
    """The names of scripts but those that render the pages."""
    return runnable(folder) - {"render", "render_studies"}


def runnable(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py") if "if __name__" in path.read_text(encoding="utf-8")}


def assert_help(script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [script.stem, "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(script), run_name="__main__")
    assert "usage:" in capsys.readouterr().out
