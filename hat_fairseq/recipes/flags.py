"""Flags of a command line, each with its values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Flag(NamedTuple):
    """One flag, e.g. `--batch-size 4`.

    `name` is written with dashes and empty for words before the first flag. `words` is the flag as the user wrote it.
    """

    name: str
    values: list[str]
    words: list[str]


def split(words: Iterable[str]) -> list[Flag]:
    """Returns the flags of a command line in order; the words behind a flag are its values."""
    flags: list[Flag] = []
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            flags.append(Flag(name.replace("_", "-"), [value] if equals else [], [word]))
        elif flags:
            flags[-1].values.append(word)
            flags[-1].words.append(word)
        else:
            flags.append(Flag("", [word], [word]))
    return flags


def values_of(flags: Iterable[Flag]) -> dict[str, str]:
    """Returns the first value of every flag that has one; of two flags of one name the last wins."""
    return {flag.name: flag.values[0] for flag in flags if flag.values}
