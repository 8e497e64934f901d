"""Messages about flags and verbs in the words of Python: arguments and methods."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..data.options import SPLITTERS

VALUES = (*SPLITTERS, "sentence", "segment", "document", "mean", "marker")
_COMMAND = re.compile(r"(`[^`]*`)")  # a command that has no method, such as `hat preprocess`, stays as it is
_FLAG = re.compile(rf"(?<![\w-])--([a-z][a-z0-9-]*)(?:[ =](-?\d[\d.]*\d|\d|{'|'.join(VALUES)})(?![\w.]))?")
_VERB = re.compile(r"\bhat (generate|predict|ask|embed|look)\b")


def in_python_words(message: str) -> str:
    """Maps `--splitter library ...; use hat predict` to `splitter="library" ...; use predict`."""
    parts = _COMMAND.split(message)
    parts[::2] = [_VERB.sub(r"\1", _FLAG.sub(_argument, part)) for part in parts[::2]]
    return "".join(parts)


def _argument(match: re.Match[str]) -> str:
    name, value = match[1].replace("-", "_"), match[2]
    if value is None:
        return name
    return f'{name}="{value}"' if value in VALUES else f"{name}={value}"


@contextmanager
def python_words() -> Iterator[None]:
    """Has an error of a value, raised in the block, name arguments of Python instead of flags."""
    try:
        yield
    except ValueError as error:
        if len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (in_python_words(error.args[0]),)
        raise
