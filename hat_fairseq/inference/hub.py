"""Names for folders of `hat package`: `demo`, and `user/name` or `user/name@revision` of the Hugging Face Hub."""

import logging
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from ..data.files import read_json
from ..package_files import MANIFEST, check_package

DEMO = Path(__file__).resolve().parents[1] / "demo_model"
NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")  # also of a relative path


def local_paths(checkpoints: str | Path) -> str:
    """Returns checkpoints with colons between them, names of the Hub as the folders that they were downloaded to."""
    return os.pathsep.join(map(_local_path, str(checkpoints).split(os.pathsep)))


def push(folder: str | Path, name: str, private: bool = False) -> str:
    """Uploads a folder of `hat package` as model `name` in one commit; returns its address. ValueError if refused."""
    check_package(Path(folder))
    hub = _library(f"pushing to {name}")
    try:
        hub.create_repo(name, private=private, exist_ok=True)
        return str(hub.upload_folder(repo_id=name, folder_path=folder, delete_patterns="*").repo_url)
    except Exception as error:  # which HTTP library it has, and so which errors, depends on its version
        raise ValueError(f"{name} cannot be written on the Hugging Face Hub ({_reason(error)})") from error


@cache
def _local_path(path: str) -> str:
    if path == "demo" and not Path(path).exists():
        return str(DEMO)
    match = NAME.fullmatch(path)
    if match is None or path.endswith(".pt") or Path(path).exists() or Path(path).parent.is_dir():
        return path
    name, revision = match.groups()
    hub = _library(f"{path} does not exist; if it is a model of the Hugging Face Hub, loading it")
    try:
        manifest = hub.hf_hub_download(name, MANIFEST, revision=revision)
        files = read_json(Path(manifest)).get("files", {})
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
