"""The folder and files of a downloaded release, checked before anything is read, or found by name at any depth."""

from pathlib import Path

from hat_fairseq.data.files import read_lines


def release_folder(root: Path | None, content: str) -> Path:
    """Return the folder that `--root` names; ValueError if there is none. `content`: what it must contain."""
    if root is None:
        raise ValueError(f"--root DIR is required: the folder of the downloaded release, containing {content}")
    if not root.is_dir():
        raise ValueError(f"--root {root} is not a folder; it must be one that contains {content}")
    return root


def release_file(path: Path, content: str) -> Path:
    """Return `path`; ValueError if it is no file. `content`: what its folder must contain, for the message."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; the folder must hold {content}")
    return path


def release_texts(folder: Path, content: str) -> list[Path]:
    """Return the `.txt` files of a folder; ValueError for none. `content`: what `--root` must contain."""
    if not (files := sorted(folder.glob("*.txt"))):
        raise ValueError(f"{folder} has no .txt files; --root must be a folder with {content}")
    return files


def read_text(path: Path) -> str:
    """Read the text of a file; ValueError as `read_lines`."""
    return "\n".join(line for _, line in read_lines(path))


def find(root: Path, *patterns: str) -> Path | None:
    """Find the file with one of these names (`*`, also `.gz`) in `root`, the first name first; ValueError for two."""
    for pattern in patterns:
        files = sorted(file for ending in ("", ".gz") for file in root.rglob(pattern + ending) if file.is_file())
        if len(files) > 1:
            raise ValueError(f"found more than one file for {pattern}: {', '.join(map(str, files))}; keep only one")
        if files:
            return files[0]
    return None


def find_one(root: Path, *patterns: str) -> Path:
    """Like `find`; ValueError also if no file matches."""
    if (file := find(root, *patterns)) is None:
        raise ValueError(f"{root}: {' or '.join(patterns)} is missing (also looked for .gz, in all folders)")
    return file
