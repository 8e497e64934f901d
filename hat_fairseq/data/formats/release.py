"""The folder and files of a downloaded release, checked before anything is read."""

from pathlib import Path


def release_folder(root: Path | None, content: str) -> Path:
    """The folder that `--root` names.

    Args:
        content: what the folder must contain, for messages.

    Raises:
        ValueError: there is no `--root`, or it is not a folder.
    """
    if root is None:
        raise ValueError(f"--root DIR is required: the folder of the downloaded release, containing {content}")
    if not root.is_dir():
        raise ValueError(f"--root {root} is not a folder; it must be one that contains {content}")
    return root


def release_file(path: Path, content: str) -> Path:
    """`path`, checked.

    Args:
        content: what the folder must contain, for messages.

    Raises:
        ValueError: `path` is not a file.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing; the folder must hold {content}")
    return path
