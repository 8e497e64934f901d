"""Names of models: paths, and `demo`, `meeting`, `user/name` or `user/name@revision` of the Hugging Face Hub."""

import glob
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ..data.checksums import Checksums
from ..data.files import files_below, read_json
from ..model_folder import BIN, CARD, MANIFEST, OF_HUB, check_files

DEMO_NAME = "demo"
MEETING_NAME = "meeting"
NAMES = (DEMO_NAME, MEETING_NAME)  # of the models of this package
DEMO = Path(__file__).resolve().parents[1] / "demo_model"
NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")  # also of a relative path
FREE = {MANIFEST, CARD, *OF_HUB}  # what a model on the Hub may have that a folder of `hat export` replaces
WITHOUT_MANIFEST = ("*.json", "*.safetensors", f"{BIN}/*", "dict.*.txt", "bpe.codes", "vocab.bpe", "*.model")


def local_paths(checkpoints: str | Path) -> str:
    """Returns checkpoints with colons between them, names of the Hub as the folders that they were downloaded to.

    ValueError for one path that exists and has a colon in it.
    """
    if os.pathsep in str(checkpoints) and Path(checkpoints).exists():
        raise ValueError(f"{checkpoints}: {os.pathsep!r} stands between the models of an ensemble; rename this one")
    return os.pathsep.join(map(local_path, str(checkpoints).split(os.pathsep)))


def push(folder: str | Path, name: str, private: bool = False) -> str:
    """Uploads a folder of `hat export` as model `name` in one commit; returns its address.

    Files that an earlier folder had, and this one has not, are deleted there.

    Raises:
        ValueError: the Hub refuses it, or the model exists and is public although `private`, or has other files.
    """
    check_files(Path(folder))
    hub = _library()
    with _refusals(name):
        info = hub.model_info(name) if hub.repo_exists(name) else None
        listed = _files_of(hub, info) if info else set()
    if info and private and not info.private:
        raise ValueError(
            f"{name} exists and is public: make it private on the Hugging Face Hub, or push to another name"
        )
    if others := sorted({file.rfilename for file in info.siblings} - listed - FREE) if info else []:
        raise ValueError(f"{name} has {others[0]!r:.80}, which hat export has not written: push to another name")
    old = sorted(listed - {*files_below(Path(folder))})
    with _refusals(name):
        if info is None:
            hub.create_repo(name, private=private)
        delete = list(map(glob.escape, old)) or None
        known = {"parent_commit": info.sha} if info else {}  # refused if somebody has changed it meanwhile
        return str(hub.upload_folder(repo_id=name, folder_path=folder, delete_patterns=delete, **known).repo_url)


def _files_of(hub: Any, info: Any) -> set[str]:
    """The files that the manifest of a model on the Hub lists; none without a manifest."""
    if not any(file.rfilename == MANIFEST for file in info.siblings):
        return set()
    return {*Checksums.read(Path(hub.hf_hub_download(info.id, MANIFEST, revision=info.sha)).parent).hashes}


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # which HTTP library it has, and so which errors, depends on its version
        raise ValueError(f"{name} cannot be written on the Hugging Face Hub ({_reason(error)})") from error


@cache
def local_path(path: str) -> str:
    """Returns the path of a model, downloaded if it is a name of the Hub; ValueError if that fails."""
    if path == DEMO_NAME and not Path(path).exists():
        return str(DEMO)
    if path == MEETING_NAME and not Path(path).exists():
        from ..units.meeting import assembled

        return str(assembled())
    match = NAME.fullmatch(path)
    if match is None or path.endswith(".pt") or Path(path).exists() or Path(path).parent.is_dir():
        return path
    name, revision = match.groups()
    hub = _library()
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=[MANIFEST]))
        files = read_json(folder / MANIFEST)["files"] if (folder / MANIFEST).is_file() else WITHOUT_MANIFEST
        return str(hub.snapshot_download(name, revision=revision, allow_patterns=[MANIFEST, *files]))
    except Exception as error:
        reason = _reason(error)
        raise ValueError(f"{path} does not exist, and is no model of the Hugging Face Hub ({reason})") from error


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _library() -> Any:
    import huggingface_hub

    for logger in ("httpcore", "httpcore2", "httpx", "httpx2", "filelock", "urllib3"):
        logging.getLogger(logger).setLevel(logging.WARNING)  # fairseq shows everything
    return huggingface_hub
