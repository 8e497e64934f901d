"""Loads trained models with their task through fairseq."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.models import MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

from ..data.dictionary import SPECIAL, Dictionary
from ..model_folder import ModelFolder, is_model_folder
from ..tasks.document_to_text import DocumentToTextTask
from ..tasks.encoder_task import EncoderTask
from .loaded import Data, Loaded, check_labels, make_ready

TASKS = DocumentToTextTask, EncoderTask


def load_checkpoints(paths: list[str], data: Data, device: str, precision: str) -> Loaded:
    """Loads models that write texts or predict labels, with their task; see `loading.load`.

    The dictionaries of the data must be those of the training: their fingerprints are in the checkpoint
    (`models/adapting.py`).
    """
    folder = ModelFolder.open(paths[0]).data if data is None else Path(data)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a directory; it should be the bin directory of hat preprocess")
    overrides = {"eval_rouge": False, "eval_bleu": False, "data": str(folder)}  # nothing is validated
    state = checkpoint_utils.load_checkpoint_to_cpu(paths[0], overrides)
    check_task(state, paths[0])
    known = {"state": state} if len(paths) == 1 else {}  # fairseq takes it for one model only
    models, _, task = checkpoint_utils.load_model_ensemble_and_task(paths, overrides, **known)
    parameters, loaded = make_ready(models, device, precision), loaded_of(models, task)
    labels = dict.fromkeys(paths, loaded.labels)
    if loaded.labels:
        labels |= {path: ModelFolder.open(path).labels(loaded.labels) for path in paths if is_model_folder(path)}
    check_labels(labels)
    return replace(loaded, paths=paths, precision=precision, parameters=parameters, labels=labels[paths[0]])


def loaded_of(models: list[Any], task: Any) -> Loaded:
    """Returns models and their task in the form of a folder; ValueError for data without pipeline.json."""
    if task.pipeline is None:
        raise ValueError(f"{task.cfg.data} has no pipeline.json: make it with hat preprocess")
    writes = isinstance(task, DocumentToTextTask)
    longest = [model.max_positions() for model in models]
    if getattr(task.cfg, "max_positions", None):
        longest.append(task.cfg.max_positions)
    return Loaded(
        [],
        models,
        task.pipeline,
        source=own_dictionary(task.source_dictionary),
        target=own_dictionary(task.target_dictionary),
        roles=own_dictionary(task.role_dictionary) if getattr(task, "role_dictionary", None) else None,
        longest=task.cfg.max_source_positions if writes else min(longest),
        labels=getattr(task, "labels", []),
        architecture=", ".join(name for name, kind in MODEL_REGISTRY.items() if kind in map(type, models)),
        task=task,
    )


def own_dictionary(words: Any) -> Dictionary:
    """Returns a dictionary of fairseq as one of this package."""
    first = len(SPECIAL)
    return Dictionary(zip(words.symbols[first:], words.count[first:], strict=True))


def check_task(state: dict[str, Any], path: str) -> None:
    """Raises ValueError for a checkpoint of a task that is none of `TASKS`, or without settings."""
    if not state.get("cfg") and not state.get("args"):
        raise ValueError(f"{path} has weights and no settings of a training: train with it first")
    section = state["cfg"]["task"] if state.get("cfg") else state["args"]
    settings = vars(section) if isinstance(section, Namespace) else section
    name = settings.get("_name") or settings["task"]
    task = TASK_REGISTRY.get(name)
    if task is None or not issubclass(task, TASKS):
        accepted = ", ".join(sorted(n for n, t in TASK_REGISTRY.items() if issubclass(t, TASKS)))
        raise ValueError(f"{path} was trained on the task {name}, not on {accepted}")
