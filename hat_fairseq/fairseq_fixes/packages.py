"""Lets fairseq load a folder of `hat package` like a checkpoint."""

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairseq.checkpoint_utils
from fairseq.dataclass.utils import overwrite_args_by_name
from fairseq.file_io import PathManager
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..data.files import Fields, is_deeper, read_json
from ..data.package import BIN, CONFIG, WEIGHTS, bare_checkpoint, check_package, is_package
from .checkpoints import CheckpointError, named_failures
from .replace import replaces

DEEPEST = 20  # levels of settings


@replaces(PathManager, "isfile")
def isfile(original: Callable[[str], bool], path: str) -> bool:
    """Whether it is a file or a folder: where `--finetune-from-model` is neither, fairseq starts from scratch."""
    return original(path) or os.path.isdir(path)


@replaces(fairseq.checkpoint_utils, "load_checkpoint_to_cpu")
def load_package(original: Callable[..., Any], path: str, arg_overrides: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Loads a checkpoint, or a package; ValueError for changed files, and for settings as of a checkpoint."""
    with named_failures(path):
        if not is_package(path):
            return original(path, arg_overrides, *args, **kwargs)
        return _load(Path(path), arg_overrides)


def _load(folder: Path, arg_overrides: Any) -> Any:
    check_package(folder)
    config = Fields(read_json(folder / CONFIG), str(folder / CONFIG), ("updates", "tied", "namespaces", "cfg"))
    try:
        tensors = load_file(folder / WEIGHTS)
        for name, kept in config.get("tied", dict).items():
            if not isinstance(kept, str) or kept not in tensors or name in tensors:
                raise config.error(f"{name!r} cannot be tied to {kept!r:.80}")
            tensors[name] = tensors[kept]
        cfg = OmegaConf.create(settings(config, folder / BIN), flags={"allow_objects": True})
        overwrite_args_by_name(cfg, arg_overrides or {})
        state = bare_checkpoint(tensors, cfg, config.get("updates", int))
        return fairseq.checkpoint_utils._upgrade_state_dict(state)
    except (CheckpointError, OmegaConfBaseException, SafetensorError) as error:
        raise CheckpointError(f"{folder}: {str(error).splitlines()[0]}") from None


def settings(config: Fields, data: Path) -> dict[str, Any]:
    """The settings of the training as its checkpoint has them, apart from the data."""
    cfg = Fields(config.get("cfg", dict), f"{config.where}: cfg", ("task", "model", "criterion"))
    if is_deeper(cfg.record, DEEPEST):
        raise config.error(f"its settings have more than {DEEPEST} levels")
    sections = {name: cfg.get(name, dict) for name in cfg.record}
    sections.setdefault("task", {})["data"] = str(data)
    namespaces = config.texts("namespaces")
    return {name: Namespace(**section) if name in namespaces else section for name, section in sections.items()}
