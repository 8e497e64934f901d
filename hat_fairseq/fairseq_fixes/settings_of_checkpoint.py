"""Refuses settings of a checkpoint that could run code.

In fairseq a checkpoint names the task, model and criterion to build, and some of their settings are evaluated as
Python: plain strings can run a shell command. Here it may name what the plugin, a `--user-dir` or another import has
registered, and those parts of fairseq that are listed below. `HAT_FAIRSEQ_TRUST=fconv,...` allows further fairseq
classes; treat such a checkpoint as executable code.
"""

import ast
import os
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import DictConfig, OmegaConf

from .checkpoints import CheckpointError

TRUST = "HAT_FAIRSEQ_TRUST"
CHECKED = {  # fairseq's own parts; their code was read for what it evaluates
    "model": "bart camembert roberta transformer xlmr",
    "task": "denoising masked_lm multilingual_denoising multilingual_masked_lm sentence_prediction sentence_ranking "
    "translation translation_from_pretrained_bart",
    "criterion": "cross_entropy label_smoothed_cross_entropy masked_lm sentence_prediction sentence_ranking",
}
KINDS = {"model": "arch", "task": "task", "criterion": "criterion"}  # and the flags that choose them
EVALUATED = ("adaptive_softmax_cutoff", "xformers_att_config")  # as Python, by the models above


def upgrade_state_dict(original: Callable[..., Any], state: Any) -> Any:
    """Checks what a checkpoint would build, before fairseq upgrades what it has read.

    CheckpointError if it has no weights, names a part that is not on the list, or has a setting that would be run.
    """
    if not isinstance(state, Mapping) or not isinstance(state.get("model"), Mapping):
        raise CheckpointError("no checkpoint of fairseq: it has no weights under the name 'model'")
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
