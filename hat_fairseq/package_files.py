"""The folder of `hat package`: its files, compared with its manifest."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hat_fairseq.data.files import Fields, files_below, read_json, sha256_of

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS, CONFIG, MANIFEST = "model.safetensors", "config.json", "manifest.json"
OF_HUB = (".git", ".gitattributes", ".cache")  # what git and the Hub put beside the files; nothing reads it
GENERATION, CARD, BIN = "generation.json", "README.md", "bin"
KEYS = ("updates", "tied", "description", "namespaces", "cfg")  # of config.json


def is_package(path: str | Path) -> bool:
    """Returns whether it is a folder of `hat package`, or what is left of one."""
    return any((Path(path) / name).is_file() for name in (WEIGHTS, CONFIG))


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the manifest of a folder: the size and the SHA-256 of each file."""
    paths = {name: folder / name for name in files_below(folder)}
    sizes = {name: path.stat().st_size for name, path in paths.items()}
    return {"files": sizes, "sha256": {name: sha256_of(path) for name, path in paths.items()}}


def check_package(folder: Path) -> None:
    """Compares a folder with its manifest; ValueError for a file too few or too many, changed, or outside of it."""
    if not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder / MANIFEST} is missing: not a whole folder of hat package; copy it again")
    fields = Fields(read_json(folder / MANIFEST), str(folder / MANIFEST), ("files", "sha256"))
    sizes, hashes = fields.get("files", dict), fields.get("sha256", dict)
    for name in sizes:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise fields.error(f"refused, because it names {name!r}, which is outside of the folder")
    # The cache of the Hugging Face Hub has links from each snapshot to its blobs.
    blobs = folder.resolve().parents[1] / "blobs" if folder.parent.name == "snapshots" else None
    for path in sorted(folder.rglob("*")):
        if path.relative_to(folder).parts[0] in OF_HUB:
            continue
        outside = path.is_symlink() and path.resolve().parent != blobs
        if outside or not (path.is_dir() or str(path.relative_to(folder)) in {MANIFEST, *sizes}):
            raise ValueError(f"{path} is a link, or not in {MANIFEST}: a package has no other files; remove it")
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size or sha256_of(path) != hashes.get(name):
            raise ValueError(f"{path} is missing, or has changed since {MANIFEST} was written; copy the package again")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file; ValueError that names it if it is damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file: {error}; copy it again") from error


def read_package(folder: Path) -> tuple[Fields, dict[str, Tensor]]:
    """Reads config.json and the tensors under all names; ValueError if the folder is not as it was written."""
    check_package(folder)
    config = Fields(read_json(folder / CONFIG), str(folder / CONFIG), KEYS)
    tensors = read_tensors(folder / WEIGHTS)
    for name, stored in config.get("tied", dict).items():
        if not isinstance(stored, str) or stored not in tensors or name in tensors:
            raise config.error(f"{name!r} cannot be tied to {stored!r:.80}")
        tensors[name] = tensors[stored]
    return config, tensors


def bare_checkpoint(model: dict[str, Any], cfg: Any = None, updates: int = 0) -> dict[str, Any]:
    """Returns the least that fairseq reads of a checkpoint: the weights, epoch 1 and no optimizer state."""
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": updates}
    return {
        "args": None,
        "cfg": cfg,
        "model": model,
        "optimizer_history": [history],
        "last_optimizer_state": None,
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
