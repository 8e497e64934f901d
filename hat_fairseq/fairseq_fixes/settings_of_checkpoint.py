"""Refuses settings of a checkpoint that could run code; takes flags of generation from its settings.

fairseq builds the task, the model and the criterion that a checkpoint names, and evaluates some of their settings as
Python: a checkpoint of plain strings can run a shell command. So a checkpoint may name what the plugin, a `--user-dir`
or another import has registered, and of fairseq's own parts those below, whose settings are checked here.
`HAT_FAIRSEQ_TRUST=fconv,...` adds names of fairseq's: then the checkpoint is trusted as a program is.
"""

import ast
import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fairseq.checkpoint_utils
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import DictConfig, OmegaConf

from ..data.files import read_json
from ..data.package import CONFIG, is_package
from .checkpoints import CheckpointError, check_file
from .replace import replaces

TRUST = "HAT_FAIRSEQ_TRUST"
CHECKED = {  # fairseq's own parts; their code was read for what it evaluates
    "model": "bart camembert roberta transformer xlmr",
    "task": "denoising masked_lm multilingual_denoising multilingual_masked_lm sentence_prediction sentence_ranking "
    "translation translation_from_pretrained_bart",
    "criterion": "cross_entropy label_smoothed_cross_entropy masked_lm sentence_prediction sentence_ranking",
}
KINDS = {"model": "arch", "task": "task", "criterion": "criterion"}  # and the flags that choose them
EVALUATED = {"adaptive_softmax_cutoff", "xformers_att_config"}  # as Python, by the models above
NUMBERS = {
    *(f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "embed_dim", "ffn_embed_dim")),
    *("encoder_attention_heads", "decoder_attention_heads", "dropout", "attention_dropout", "activation_dropout"),
    *("max_positions", "max_source_positions", "max_target_positions", "tokens_per_sample"),
}
# What the data of a task are called and how long they may be; fairseq-generate builds the task from its flags alone.
RECORDED = ("source_lang", "target_lang", "role_stream", "max_source_positions", "max_target_positions", "long_source")


def recorded_flags(path: str, given: str | None) -> list[str]:
    """Flags for the task of a checkpoint, or package, if it is one of this plugin; `given`: the value of `--task`.

    What cannot be read has none: loading it says why.
    """
    try:
        if is_package(path):
            task = _plain(read_json(Path(path, CONFIG))["cfg"]["task"])
        else:
            check_file(path)
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)  # reads no tensors
            task = _plain(state["cfg"]["task"] if state.get("cfg") else state["args"])
        name = str(task.get("_name") or task["task"])
    except Exception:
        return []
    if name != (given or name) or getattr(TASK_REGISTRY.get(name), "__module__", "").split(".")[0] != "hat_fairseq":
        return []
    values = {"task": name, **{key: task[key] for key in RECORDED if task.get(key) is not None}}
    return [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]


@replaces(fairseq.checkpoint_utils, "_upgrade_state_dict")
def upgrade_state_dict(original: Callable[..., Any], state: Any) -> Any:
    """What fairseq does with each checkpoint as soon as its file has been read, after the check of what it would build.

    Raises:
        CheckpointError: it has no weights, it names a model, task or criterion that is not on the list, or a setting
            has another type.
    """
    if not isinstance(state, Mapping) or not isinstance(state.get("model"), Mapping):
        raise CheckpointError("no checkpoint of fairseq: it has no weights under the name 'model'")
    args, cfg = _plain(state.get("args")), _plain(state.get("cfg") or {})
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
                _check_name(kind, name, trusted)
            if kind == "model" and trusted.isdisjoint(map(str, names)):
                _check_values(section)
    return original(state)


def _check_name(kind: str, name: object, trusted: set[str]) -> None:
    if name in trusted:
        return
    classes: dict[str, Mapping[str, type]] = {
        "model": {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY},
        "task": TASK_REGISTRY,
        "criterion": CRITERION_REGISTRY,
    }
    cls = classes[kind].get(name) if isinstance(name, str) else None
    if cls is None:
        raise CheckpointError(f"it names the {kind} {name!r}, which nothing has registered; give its --user-dir")
    from_fairseq = cls.__module__.split(".")[0] == "fairseq"
    registered = ARCH_MODEL_NAME_REGISTRY.get(name, name) if kind == "model" else name
    if from_fairseq and registered not in CHECKED[kind].split():
        raise CheckpointError(
            f"refused, because it names fairseq's {kind} {name!r}, which could run code that is in the settings. If "
            f"you trust its author: {TRUST}={name}"
        )


def _check_values(section: object) -> None:
    for name, value in _all_entries(section):
        if not isinstance(value, str):
            continue
        evaluated = any(name.endswith(ending) for ending in EVALUATED)
        if evaluated and value and not _reads(ast.literal_eval, value):
            raise CheckpointError(f"refused, because fairseq would run its setting {name} as code: {_short(value)}")
        if name in NUMBERS and not _reads(float, value):
            raise CheckpointError(f"refused, because its setting {name} is not a number: {_short(value)}")


def _plain(settings: Any) -> Any:
    """Namespaces and omegaconf's containers as dictionaries and lists; CheckpointError for an interpolation."""
    if isinstance(settings, DictConfig):
        settings = OmegaConf.to_container(settings, resolve=False)
    if isinstance(settings, str) and "${" in settings:
        what = "as with a variable of the environment"
        raise CheckpointError(f"refused, because omegaconf would fill in the setting {_short(settings)}, {what}")
    if isinstance(settings, Namespace):
        settings = vars(settings)
    if isinstance(settings, Mapping):
        return {str(name): _plain(value) for name, value in settings.items()}
    return [_plain(item) for item in settings] if isinstance(settings, list | tuple) else settings


def _all_entries(section: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(section, Mapping):
        for name, value in section.items():
            yield from _all_entries(value, name)
    elif isinstance(section, list):
        for item in section:
            yield from _all_entries(item, name)
    else:
        yield name, section


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (ValueError, SyntaxError):
        return False
    return True


def _short(value: str) -> str:
    return repr(value if len(value) < 60 else value[:57] + "...")
