"""Find the files of a release by their names, wherever in the folder its archives were unpacked."""

from __future__ import annotations

from pathlib import Path


def find(root: Path, *patterns: str) -> Path | None:
    """The file with one of these names (with ``*``, also ``.gz``) anywhere under ``root``; earlier patterns go first.

    Raises:
        ValueError: several files fit a pattern.
    """
    for pattern in patterns:
        found = sorted(file for ending in ("", ".gz") for file in root.rglob(pattern + ending) if file.is_file())
        if len(found) > 1:
            raise ValueError(f"{' and '.join(map(str, found))} are the same thing twice; leave one of them in {root}")
        if found:
            return found[0]
    return None


def find_one(root: Path, *patterns: str) -> Path:
    """As ``find``, for a file that must be there.

    Raises:
        ValueError: it is not, or it is there several times.
    """
    found = find(root, *patterns)
    if found is None:
        raise ValueError(f"{root}: {' or '.join(patterns)} is missing (also looked for .gz, in all folders)")
    return found
