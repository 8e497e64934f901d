"""Where a raw release lies: what is missing is said before anything is read."""

from __future__ import annotations

from pathlib import Path


def release_folder(root: Path | None, content: str) -> Path:
    """What ``--root`` says, if it is a folder.

    Args:
        content: what the folder must hold, for messages.

    Raises:
        ValueError: there is no ``--root``, or it is no folder.
    """
    if root is None:
        raise ValueError(f"this dataset has to be fetched by you: --root is needed, a folder with {content}")
    if not root.is_dir():
        raise ValueError(f"--root {root} is no folder; it must be one with {content}")
    return root


def release_file(path: Path, content: str) -> Path:
    """``path``, if it is a file.

    Raises:
        ValueError: it is not; ``content`` says what the folder must hold.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing; the folder must hold {content}")
    return path
