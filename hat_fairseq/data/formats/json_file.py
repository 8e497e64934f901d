"""A file that is one JSON value, as opposed to JSON lines."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hat_fairseq.data.files import read_lines


def read_json(path: Path) -> Any:
    """What the file holds.

    Raises:
        ValueError: invalid UTF-8 or JSON; with file and line.
    """
    try:
        return json.loads("\n".join(line for _, line in read_lines(path)))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: no JSON ({error.msg}); is the file cut off?") from error


def text_of(record: Mapping[str, Any], key: str, where: str) -> str:
    """The string under ``key``.

    Raises:
        ValueError: there is none; ``where`` opens the message.
    """
    if not isinstance(record.get(key), str):
        raise ValueError(f"{where}: {key} must be a string, not {record.get(key)!r:.60}")
    return str(record[key])


def list_of(record: Mapping[str, Any], key: str, kind: type, where: str) -> list[Any]:
    """The list under ``key``, all of whose items are of ``kind``.

    Raises:
        ValueError: there is none; ``where`` opens the message.
    """
    value = record.get(key)
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise ValueError(f"{where}: {key} must be a list of type {kind.__name__}, not {value!r:.60}")
    return value
