"""Checked fields of JSON objects: one wording for every file that is read."""

from collections.abc import Collection, Mapping
from typing import Any

_NAMES = {str: "a string", int: "a number", list: "a list", dict: "an object"}


class Fields:
    """A JSON object whose values are checked when they are read.

    Args:
        record: the object.
        where: file and line, or the place in a file; it opens every message.
        known: the keys that it may have; None for any.

    Raises:
        ValueError: it is no object, or it has another key.
    """

    def __init__(self, record: Any, where: str, known: Collection[str] | None = None) -> None:
        self.where = where
        if not isinstance(record, Mapping):
            raise self.error(f"expected a JSON object, found {record!r:.60}")
        if known is not None and (unknown := sorted(record.keys() - known)):
            raise self.error(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
        self.record = record

    def __contains__(self, key: str) -> bool:
        return key in self.record

    def error(self, problem: str) -> ValueError:
        """The problem with its place."""
        return ValueError(f"{self.where}: {problem}")

    def get(self, key: str, kind: type) -> Any:
        """The value under a key, of the type `kind`: str, int, list or dict; ValueError if there is none."""
        if key not in self.record:
            raise self.error(f"there is no {key}")
        return self.checked(self.record[key], kind, key)

    def checked(self, value: Any, kind: type, name: str) -> Any:
        """A value of the type `kind`; ValueError for any other."""
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(f"{name} must be {_NAMES[kind]}, not {value!r:.60}")
        return value

    def text(self, key: str) -> str:
        """The string under a key."""
        return str(self.get(key, str))

    def items(self, key: str, kind: type) -> list[Any]:
        """The list under a key, all of whose items are of the type `kind`."""
        return [self.checked(item, kind, f"each item of {key}") for item in self.get(key, list)]

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of strings under a key."""
        return tuple(self.items(key, str))

    def objects(self, key: str, known: Collection[str] | None = None) -> "list[Fields]":
        """The list of objects under a key."""
        return [Fields(item, f"{self.where}: {key}", known) for item in self.items(key, dict)]
