"""Imports fairseq without scikit-learn and scipy.stats, whose import takes more time than its own.

Two modules of fairseq name functions of these libraries. Such a function is imported when it is called.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

LATE = ("sklearn", "sklearn.metrics", "scipy.stats")


class LateModule(ModuleType):
    """Stands for a module while fairseq is imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if (module := f"{self.__name__}.{name}") in LATE:
            return LateModule(module)
        return lambda *args, **kwargs: getattr(importlib.import_module(self.__name__), name)(*args, **kwargs)


def import_fairseq() -> None:
    """Imports fairseq; afterwards the libraries can be imported as usual."""
    late = {name: LateModule(name) for name in LATE if name not in sys.modules}
    sys.modules |= late
    try:
        importlib.import_module("fairseq")
    finally:
        for name in late:
            del sys.modules[name]
