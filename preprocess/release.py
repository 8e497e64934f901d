"""The folder and files of a downloaded release, checked before anything is read, or found by name at any depth."""

from pathlib import Path


def release_folder(root: Path | None, content: str) -> Path:
    """The folder that `--root` names; ValueError if there is none. `content`: what it must contain, for messages."""
    if root is None:
        raise ValueError(f"--root DIR is required: the folder of the downloaded release, containing {content}")
    if not root.is_dir():
        raise ValueError(f"--root {root} is not a folder; it must be one that contains {content}")
    return root


def release_file(path: Path, content: str) -> Path:
    """`path`; ValueError if it is no file. `content`: what its folder must contain, for the message."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; the folder must hold {content}")
    return path


def find(root: Path, *patterns: str) -> Path | None:
    """The file with one of these names (`*`, also `.gz`) under `root`, the first name first; ValueError for several."""
    for pattern in patterns:
        found = sorted(file for ending in ("", ".gz") for file in root.rglob(pattern + ending) if file.is_file())
        if len(found) > 1:
            raise ValueError(f"found more than one file for {pattern}: {', '.join(map(str, found))}; keep only one")
        if found:
            return found[0]
    return None


def find_one(root: Path, *patterns: str) -> Path:
    """Like `find`; ValueError also if no file matches."""
    found = find(root, *patterns)
    if found is None:
        raise ValueError(f"{root}: {' or '.join(patterns)} is missing (also looked for .gz, in all folders)")
    return found
