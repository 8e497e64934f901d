"""Shakes the matrix products (`shaken.py`) of each process that the tests start, as soon as it has imported torch."""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class Finder(importlib.abc.MetaPathFinder):
    """Finds torch, with a loader that also shakes it."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> object:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), install())  # type: ignore[method-assign]
        return spec


def install() -> None:
    sys.path.append(os.path.dirname(os.path.dirname(__file__)))
    import shaken

    sys.path.pop()
    shaken.install()


if os.environ.get("HAT_SHAKEN"):
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
