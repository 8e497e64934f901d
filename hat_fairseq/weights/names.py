"""Names of models: paths, and `demo`, `meeting`, `user/name` or `user/name@revision` of the Hugging Face Hub."""

import logging
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from ..data.files import read_json
from ..model_folder import BIN, MANIFEST, check_files

DEMO_NAME = "demo"
MEETING_NAME = "meeting"
NAMES = (DEMO_NAME, MEETING_NAME)  # of the models of this package
DEMO = Path(__file__).resolve().parents[1] / "demo_model"
NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")  # also of a relative path
WITHOUT_MANIFEST = ("*.json", "*.safetensors", f"{BIN}/*", "dict.*.txt", "bpe.codes", "vocab.bpe", "*.model")


def local_paths(checkpoints: str | Path) -> str:
    """Returns checkpoints with colons between them, names of the Hub as the folders that they were downloaded to.

    ValueError for one path that exists and has a colon in it.
    """
    if os.pathsep in str(checkpoints) and Path(checkpoints).exists():
        raise ValueError(f"{checkpoints}: {os.pathsep!r} stands between the models of an ensemble; rename this one")
    return os.pathsep.join(map(local_path, str(checkpoints).split(os.pathsep)))


def push(folder: str | Path, name: str, private: bool = False) -> str:
    """Uploads a folder of `hat export` as model `name` in one commit; returns its address. ValueError if refused."""
    check_files(Path(folder))
    hub = _library(f"pushing to {name}")
    try:
        hub.create_repo(name, private=private, exist_ok=True)
        return str(hub.upload_folder(repo_id=name, folder_path=folder, delete_patterns="*").repo_url)
    except Exception as error:  # which HTTP library it has, and so which errors, depends on its version
        raise ValueError(f"{name} cannot be written on the Hugging Face Hub ({_reason(error)})") from error


@cache
def local_path(path: str) -> str:
    """Returns the path of a model, downloaded if it is a name of the Hub; ValueError if that fails."""
    if path == DEMO_NAME and not Path(path).exists():
        return str(DEMO)
    if path == MEETING_NAME and not Path(path).exists():
        from .meeting import assembled

        return str(assembled())
    match = NAME.fullmatch(path)
    if match is None or path.endswith(".pt") or Path(path).exists() or Path(path).parent.is_dir():
        return path
    name, revision = match.groups()
    hub = _library(f"{path} does not exist; if it is a model of the Hugging Face Hub, loading it")
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=[MANIFEST]))
        files = read_json(folder / MANIFEST)["files"] if (folder / MANIFEST).is_file() else WITHOUT_MANIFEST
        return str(hub.snapshot_download(name, revision=revision, allow_patterns=[MANIFEST, *files]))
    except Exception as error:
        reason = _reason(error)
        raise ValueError(f"{path} does not exist, and is no model of the Hugging Face Hub ({reason})") from error


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _library(what: str) -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise ValueError(f"{what} needs huggingface_hub: pip install 'hat_fairseq[hub]'") from None
    for logger in ("httpcore", "httpcore2", "httpx", "httpx2", "filelock", "urllib3"):
        logging.getLogger(logger).setLevel(logging.WARNING)  # fairseq shows everything
    return huggingface_hub
