"""Puts the recipes, the readers and the demo, which lie beside the package, into it; the rest is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("configs", "preprocess", "examples")


class BuildPy(build_py):
    def run(self) -> None:
        super().run()
        for name in () if self.editable_mode else FOLDERS:
            target = Path(self.build_lib, "hat_fairseq", name)
            shutil.rmtree(target, ignore_errors=True)  # of an earlier build
            shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))


setup(cmdclass={"build_py": BuildPy})
