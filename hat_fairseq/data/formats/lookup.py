"""Find the files of a release by name, at any depth of a folder."""

from pathlib import Path


def find(root: Path, *patterns: str) -> Path | None:
    """The file with one of these names (with `*`, also `.gz`) anywhere under `root`; earlier patterns go first.

    Raises:
        ValueError: several files match a pattern.
    """
    for pattern in patterns:
        found = sorted(file for ending in ("", ".gz") for file in root.rglob(pattern + ending) if file.is_file())
        if len(found) > 1:
            raise ValueError(f"found more than one file for {pattern}: {', '.join(map(str, found))}; keep only one")
        if found:
            return found[0]
    return None


def find_one(root: Path, *patterns: str) -> Path:
    """Like `find`, for a file that must exist.

    Raises:
        ValueError: it is not, or it is there several times.
    """
    found = find(root, *patterns)
    if found is None:
        raise ValueError(f"{root}: {' or '.join(patterns)} is missing (also looked for .gz, in all folders)")
    return found
