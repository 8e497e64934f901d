"""The wheel has all that the commands need: a recipe runs from it, in an empty folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from commands import REPOSITORY

from hat_fairseq.recipes import files

UNTRACKED = shutil.ignore_patterns(
    ".*", "build", "site", "*.egg-info", "__pycache__", "tests", "data-bin", "checkpoints"
)


@pytest.mark.slow
def test_a_recipe_runs_from_the_wheel(tmp_path: Path) -> None:
    source, target, empty = (tmp_path / name for name in ("source", "target", "empty"))
    shutil.copytree(REPOSITORY, source, ignore=UNTRACKED)
    empty.mkdir()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = ZipFile(wheel).namelist()
    for folder in ("configs", "preprocess", "examples"):
        own = {str(path.relative_to(source)) for path in (source / folder).rglob("*.*") if path.is_file()}
        assert own == {name.removeprefix("hat_fairseq/") for name in names if name.startswith(f"hat_fairseq/{folder}/")}
    subprocess.run([*pip, "install", "-q", "--no-deps", "--target", target, wheel], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target), "PYTHONSAFEPATH": "1"}

    def hat(*words: str) -> str:
        command = [sys.executable, "-m", "hat_fairseq.cli", *words]
        return subprocess.run(command, check=True, cwd=empty, env=environment, capture_output=True, text=True).stdout

    assert hat("user-dir").strip() == f"{target}/hat_fairseq"
    assert {*files.names()} <= {*hat("recipe", "list").split()}
    assert "the installation works" in hat("doctor", "--run")
    assert not list(empty.iterdir())
    model = "import hat_fairseq; print(hat_fairseq.load('demo'))"
    loaded = subprocess.run([sys.executable, "-c", model], check=True, cwd=empty, env=environment, capture_output=True)
    assert b"Model('demo', kind text" in loaded.stdout
