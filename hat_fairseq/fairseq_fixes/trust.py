"""Trust: what is read of a checkpoint that a stranger may have made. Nothing in it is run, and it has to be whole.

In fairseq a checkpoint is a pickle, and names the task, model and criterion to build; some of their settings are
evaluated as Python, so plain strings can run a shell command. Here it holds tensors and plain data only, and may name
what the plugin, a `--user-dir` or another import has registered, and those parts of fairseq that are listed below.
`HAT_FAIRSEQ_TRUST=fconv,...` allows further fairseq classes; treat such a checkpoint as executable code.
"""

import ast
import collections
import contextlib
import functools
import os
import pickle
import re
import typing
import zipfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import fairseq.distributed.utils as distributed_utils
import numpy as np
import omegaconf
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict

from ..former import todays_name, todays_of_checkpoint
from ..networks import NETWORKS
from ..options import OptionError

TRUST = "HAT_FAIRSEQ_TRUST"
CHECKED = {  # fairseq's own parts; their code was read for what it evaluates
    "model": "bart camembert roberta transformer xlmr",
    "task": "denoising masked_lm multilingual_denoising multilingual_masked_lm sentence_prediction sentence_ranking "
    "translation translation_from_pretrained_bart",
    "criterion": "cross_entropy label_smoothed_cross_entropy masked_lm sentence_prediction sentence_ranking",
}
KINDS = {"model": "arch", "task": "task", "criterion": "criterion"}  # and the flags that choose them
EVALUATED = ("adaptive_softmax_cutoff", "xformers_att_config")  # as Python, by the models above


class CheckpointError(ValueError):
    """A checkpoint that is missing, refused, or does not fit; the message says which and what to do."""


def allow_checkpoint_types() -> None:
    """Lets `torch.load(weights_only=True)` read what fairseq's checkpoints hold, all of it plain data."""
    plain = [Namespace, collections.defaultdict, dict, list, int, float, str, bool, typing.Any]
    sent = [distributed_utils._TensorPlaceholder]  # a checkpoint on its way from the first process to the others
    settings = [omegaconf.DictConfig, omegaconf.ListConfig, omegaconf.base.ContainerMetadata, omegaconf.base.Metadata]
    settings += [node for name, node in vars(omegaconf.nodes).items() if name.endswith("Node")]
    arrays: list[Any] = [np.ndarray, np.dtype, *{type(np.dtype(code)) for code in "?bhilBHILefd"}]
    numpy = np._core.multiarray  # type: ignore[attr-defined]
    torch.serialization.add_safe_globals([*plain, *sent, *settings, *arrays, numpy._reconstruct, numpy.scalar])


@contextlib.contextmanager
def named_failures(path: str) -> Iterator[None]:
    """Raises CheckpointError for an error that the content of a checkpoint causes."""
    try:
        yield
    except pickle.UnpicklingError as error:
        culprit = re.search(r"GLOBAL (\S+)", str(error))
        if culprit is None:
            raise CheckpointError(f"{path}: not a checkpoint of torch") from None
        what = f"more than tensors and settings ({culprit[1]}): loading it could run code"
        raise CheckpointError(f"{path}: refused, because it holds {what}") from None
    except Exception as error:
        from_torch = isinstance(error, OSError) and error.errno is not None and error.filename is None
        if from_torch or isinstance(error, EOFError) or "PytorchStreamReader" in str(error):
            raise CheckpointError(f"{path}: not a complete checkpoint ({Path(path).stat().st_size} bytes)") from None
        if isinstance(error, OSError) and error.errno is None:  # as fairseq says that a file does not exist
            raise CheckpointError(str(error)) from None
        if isinstance(error, OptionError):  # of its settings
            raise CheckpointError(f"{path}: no model can be built from it ({error.in_python})") from None
        if isinstance(error, ValueError | OSError | MemoryError):
            raise
        cause = f"{type(error).__name__}: {' '.join(str(error).split()):.400}"
        raise CheckpointError(f"{path}: no model can be built from it ({cause})") from error


def check_file(path: str) -> None:
    """Checks what can be known of a checkpoint without loading it; a file that does not exist is left to the caller.

    `torch.save` writes a zip archive with a CRC-32 for each tensor, which `torch.load` does not compare: flipped bits
    load. Comparing them takes about half a second for a gigabyte. CheckpointError if they differ.
    """
    if Path(path).is_dir():
        is_data = any(Path(path).glob("*.ids")) or (Path(path) / "bin").is_dir()
        raise CheckpointError(
            "data of hat preprocess, no model" if is_data else "a directory; give the checkpoint in it"
        )
    if not Path(path).is_file():
        return
    status = os.stat(path)
    if damage := _damage(str(path), status.st_size, status.st_mtime_ns):
        raise CheckpointError(f"damaged: {damage}; use another checkpoint, or copy it again")


@functools.cache
def _damage(path: str, size: int, modified: int) -> str | None:
    """Describes the damage of a zip archive; a file is read once."""
    if not zipfile.is_zipfile(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            if any(part.compress_type for part in archive.infolist()):
                return "it is compressed, which torch.save does not do, and could unpack to fill the memory"
            part = archive.testzip()
            return part and f"wrong checksum of {part}"
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        return str(error)


def upgrade_state_dict(original: Callable[..., Any], state: Any) -> Any:
    """Checks what a checkpoint would build, before fairseq upgrades what it has read.

    CheckpointError if it has no weights, names a part that is not on the list, or has a setting that would be run.
    """
    if not isinstance(state, Mapping) or not isinstance(state.get("model"), Mapping):
        raise CheckpointError("no checkpoint of fairseq: it has no weights under the name 'model'")
    for section in (state.get("args"), (state.get("cfg") or {}).get("model")):
        _rename(section)
    args, cfg = plain(state.get("args")), plain(state.get("cfg") or {})
    if not isinstance(cfg, dict):
        raise CheckpointError("its settings are no dictionary")
    if isinstance(args, dict):
        args.setdefault("task", "translation")  # as fairseq does
    trusted = {name for name in os.environ.get(TRUST, "").split(",") if name}
    for kind, key in KINDS.items():
        for section in (section for section in (args, cfg.get(kind)) if section is not None):
            names = [section[name] for name in (key, "_name") if section.get(name)] if isinstance(section, dict) else []
            if not names:
                raise CheckpointError(f"its settings do not name the {kind}")
            for name in names:
                if name not in trusted:
                    _check_name(kind, name)
            if kind == "model" and trusted.isdisjoint(map(str, names)):
                _check_values(section)
    return original(state)


def _rename(section: Any) -> None:
    """Gives the settings of a model, in place, their names of today; CheckpointError for one that no longer runs."""
    values = vars(section) if isinstance(section, Namespace) else section
    if not isinstance(values, MutableMapping):
        return
    former = dict(plain(values))
    try:
        own = todays_of_checkpoint(str(former.get("_name") or former.get("arch")), former)
    except ValueError as error:
        raise CheckpointError(str(error)) from None
    with open_dict(section) if isinstance(section, DictConfig) else contextlib.nullcontext():
        for name in former.keys() - own.keys():
            del values[name]
        values.update({name: own[name] for name in own.keys() - former.keys()})
        values.update({key: todays_name(former[key]) for key in ("arch", "_name") if isinstance(former.get(key), str)})


def plain(settings: Any) -> Any:
    """Namespaces and omegaconf's containers as dictionaries and lists; CheckpointError for an interpolation."""
    if isinstance(settings, DictConfig):
        settings = OmegaConf.to_container(settings, resolve=False)
    if isinstance(settings, str) and "${" in settings:
        what = "as with a variable of the environment"
        raise CheckpointError(f"refused, because omegaconf would fill in the setting {settings!r:.60}, {what}")
    if isinstance(settings, Namespace):
        settings = vars(settings)
    if isinstance(settings, Mapping):
        return {str(name): plain(value) for name, value in settings.items()}
    return [plain(item) for item in settings] if isinstance(settings, list | tuple) else settings


def _check_name(kind: str, name: object) -> None:
    registries = {"task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}
    classes: Mapping[Any, type] = registries.get(kind) or {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}
    cls = classes.get(name) if isinstance(name, str) else None
    if cls is None:
        raise CheckpointError(f"it names the {kind} {name!r}, which nothing has registered; give its --user-dir")
    registered = ARCH_MODEL_NAME_REGISTRY.get(name, name) if kind == "model" else name
    if cls.__module__.split(".")[0] == "fairseq" and registered not in CHECKED[kind].split():
        raise CheckpointError(
            f"refused, because it names fairseq's {kind} {name!r}, which could run code that is in the settings. If "
            f"you trust its author: {TRUST}={name}"
        )


def _check_values(value: Any, name: str = "") -> None:
    if isinstance(value, dict):
        for name, entry in value.items():
            _check_values(entry, name)
    elif isinstance(value, list):
        for item in value:
            _check_values(item, name)
    elif isinstance(value, str) and value and name.endswith(EVALUATED):
        try:
            ast.literal_eval(value)
        except (ValueError, SyntaxError):
            why = f"its setting {name} is not a literal: fairseq would run it as code: {value!r:.60}"
            raise CheckpointError(f"refused, because {why}") from None


def without_training(state: dict[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Removes settings of the training that name files which a model writes, unless the caller has `stated` them."""
    names = {name for network in NETWORKS.values() for name in getattr(network, "training_only", ())} - stated.keys()
    for settings in ((state.get("cfg") or {}).get("model"), state.get("args")):
        if isinstance(settings, Namespace):
            for name in names & vars(settings).keys():
                delattr(settings, name)
        elif isinstance(settings, DictConfig):
            with open_dict(settings):
                for name in names & settings.keys():
                    settings.pop(name)
    return state


def load_archive_file(original: Callable[..., Any], archive_file: str) -> str:
    """Returns the folder for `from_pretrained`; fairseq's should unpack no archive, whose files can be elsewhere."""
    if not os.path.isdir(archive_file):
        raise CheckpointError(
            f"{archive_file} is not a folder: unpack an archive yourself and give the folder of model.pt"
        )
    return archive_file
