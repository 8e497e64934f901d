"""Trained models for inference: folders as the networks of `networks`, all others through fairseq."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from ..data.dictionary import Dictionary, check_fingerprints, find_dictionary, fingerprint
from ..data.files import check_lfs
from ..data.kinds import ClassificationKind, Kind, LabelledKind
from ..data.options import SPLITTERS, settings_of_tokens
from ..data.pipeline import FILE_NAME, TextPipeline
from ..kernels import choose_precision
from ..model_folder import BUILDING, FINGERPRINT, ModelFolder, is_model_folder
from ..networks import build, fill, without_training
from ..options import OptionError
from ..suggestions import did_you_mean
from ..weights.names import NAMES, local_paths
from .loaded import Data, Loaded, check_labels, make_ready


def load(checkpoints: str | Path, data: Data = None, device: str | None = None, precision: str = "fp32") -> Loaded:
    """Loads models for inference (several with colons between them make an ensemble).

    Args:
        checkpoints: paths, also of folders, or their names on the Hugging Face Hub.
        data: the bin directory of `hat preprocess`, with dictionaries and pipeline.json; None: that of the folder.
        device: e.g. "cuda"; default: a GPU if there is one.
        precision: one of `kernels.precision.PRECISIONS`, or auto; see `kernels.precision.choose_precision`.

    Raises:
        ValueError: a file is missing or has changed, the model does not fit the data, the device does not support the
            precision, or fairseq is needed and not installed.
    """
    device, precision, paths = checked(checkpoints, data, device, precision)
    folders = {path: ModelFolder.open(path) for path in paths if is_model_folder(path)}
    others = [path for path in paths if path not in folders or folders[path].description is None]
    if data is None and not others:
        return load_folders([folders[path] for path in paths], device, precision)
    purpose = f"{others[0]}, a checkpoint or a folder of an earlier version," if others else f"a folder with {data}"
    return load_with_fairseq(paths, data, device, precision, purpose)


def with_task(loaded: Loaded, purpose: str) -> Loaded:
    """Returns the models through fairseq; see `load_with_fairseq`."""
    if loaded.task is not None:
        return loaded
    return load_with_fairseq(loaded.paths, None, str(loaded.device), loaded.precision, purpose)


def load_with_fairseq(paths: list[str], data: Data, device: str, precision: str, purpose: str) -> Loaded:
    """Loads models with their task through fairseq; ValueError that names the purpose where it is not installed."""
    if find_spec("fairseq") is None:
        raise ValueError(f"{purpose} needs fairseq, which is not installed; folders of hat export do not")
    from .checkpoints import load_checkpoints

    return load_checkpoints(paths, data, device, precision)


def checked(checkpoints: str | Path, data: Data, device: str | None, precision: str) -> tuple[str, str, list[str]]:
    """Returns device, precision and the path of each checkpoint; ValueError for what is missing or cannot be loaded."""
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device {device} is unknown; give cpu, cuda or cuda:N") from error
    if place.type == "cuda" and (place.index or 0) >= torch.cuda.device_count():  # which does not start CUDA
        raise ValueError(f"device {device}: torch sees {torch.cuda.device_count()} GPUs here; give another, or cpu")
    precision = choose_precision(precision, device)
    paths = local_paths(checkpoints).split(os.pathsep)
    for path in paths:
        if not Path(path).exists():
            raise ValueError(f"checkpoint {path} does not exist{did_you_mean(path, NAMES) or ': has it been trained?'}")
        check_lfs(path)
    if data is None and not is_model_folder(paths[0]):
        text = "{} is no folder of hat export: give the bin directory of its training ({data})"
        raise OptionError(text, paths[0], data=None)
    return device, precision, paths


def load_folders(folders: list[ModelFolder], device: str, precision: str) -> Loaded:
    """Loads the networks of folders, with what belongs to the first; ValueError for others that read other data."""
    loaded = list(map(load_folder, folders))
    first, *others = loaded
    for folder, other in zip(folders[1:], others, strict=True):
        read = [
            (settings_of_tokens(x.pipeline.settings), x.source.symbols, x.target.symbols, x.roles and x.roles.symbols)
            for x in (first, other)
        ]
        if read[0] != read[1]:
            other_data = f"was trained on data with other dictionaries or settings than {folders[0].path}"
            raise ValueError(f"{folder.path} {other_data}")
        check_labels({str(each.path): own.labels for each, own in ((folders[0], first), (folder, other))})
    models = [model for each in loaded for model in each.models]
    parameters = make_ready(models, device, precision)
    paths = [str(folder.path) for folder in folders]
    return replace(first, paths=paths, models=models, precision=precision, parameters=parameters)


def check_writes_texts(path: str, kind: Kind) -> None:
    """Raises ValueError for models of a kind of data without texts to write."""
    if not kind.has_target:
        raise ValueError(f"{path} was trained on the task {kind.task}: it writes no texts; use hat {verb_of(kind)}")


def verb_of(kind: Kind) -> str:
    """Returns the verb of `hat` that uses models of a kind of data."""
    return "generate" if kind.has_target else kind.verb


def load_folder(folder: ModelFolder) -> Loaded:
    """Loads the network of a folder, fp32 on the CPU, and what belongs to it; ValueError if none can be built."""
    tensors, description, data = folder.tensors(), folder.description, folder.data
    assert description is not None
    try:
        model, pipeline = build(without_training(description)), pipeline_of(folder)
        fill(model, {name: tensor for name, tensor in tensors.items() if not name.endswith(FINGERPRINT)})
        recorded = {name: tensor.tolist() for name, tensor in tensors.items() if name.endswith(FINGERPRINT)}
        roles = dictionary_of(data, "role") if description["num_roles"] else None
        size = description["source_vocab_size"] or description["vocab_size"]
        source = dictionary_of(data, "source", size, list(recorded.values()))
        target = dictionary_of(data, "target") if find_dictionary(data, "target") else source
        encoder: Any = getattr(model, "core", model.encoder)
        longest = min(description["max_source_positions"], encoder.max_tokens)
        labels, classes = labels_of(folder, pipeline.kind)
        if size < len(source):
            raise ValueError(f"the table of the source has {size} rows, and its dictionary {len(source)} symbols")
        dictionaries = {"source": source, "target": target, "role": roles, "label": classes}
        check_fingerprints(recorded, dictionaries, folder.path)
    except BUILDING as error:
        raise folder.no_model(error) from error
    name = description["network"]
    return Loaded([str(folder.path)], [model], pipeline, source, target, roles, longest, labels, name)


def pipeline_of(folder: ModelFolder) -> TextPipeline:
    """Loads the pipeline; a model with one label for a document that transformers trained on other data predicts it."""
    pipeline = TextPipeline.load(folder.data)
    heads = [head["level"] for head in (folder.description or {}).get("heads", {}).values()]
    if heads == [ClassificationKind.head_level] and not isinstance(pipeline.kind, LabelledKind):
        pipeline.settings = replace(pipeline.settings, kind=ClassificationKind.name)
    return pipeline


def labels_of(folder: ModelFolder, kind: Kind) -> tuple[list[str], Dictionary | None]:
    """Returns the names of the classes, and their dictionary; after a training by transformers there may be others."""
    if not getattr(kind, "names_labels", False):
        return [], None
    path, labels = find_dictionary(folder.data, "label"), folder.labels(folder.trained_labels())
    dictionary = Dictionary.load(path) if path else None
    return labels, dictionary if dictionary and len(dictionary.counts) == len(labels) else None


def dictionary_of(data: Path, stream: str, size: int = 0, recorded: Sequence[Sequence[int]] = ()) -> Dictionary:
    """Returns a dictionary of a folder; with one entry more than in the file, `<mask>`, if the size says so.

    A table that transformers has made larger may have more rows; then the fingerprints of the training say it.
    """
    path = find_dictionary(data, stream)
    if path is None:
        raise ValueError(f"the dictionary of the stream {stream} is missing")
    dictionary = Dictionary.load(path)
    if len(dictionary) >= size:
        return dictionary
    with_mask = Dictionary([*dictionary.counts, ("<mask>", 1)])
    return with_mask if len(with_mask) == size or fingerprint(with_mask.symbols) in recorded else dictionary


def split_with(pipeline: TextPipeline, splitter: str | None) -> None:
    """Sets how a pipeline splits running text (None: no change); ValueError for an unknown splitter or other data."""
    if splitter is None:
        return
    if splitter not in SPLITTERS:
        raise ValueError(f"unknown sentence splitter {splitter!r}; choose one of {', '.join(SPLITTERS)}")
    if not pipeline.kind.is_text:
        raise ValueError(f"a splitter is for text, and data of the kind {pipeline.settings.kind} are none")
    if not pipeline.kind.has_running_text:
        kind = pipeline.settings.kind
        raise OptionError("{splitter} has no effect on the kind {}: remove it", kind, splitter=splitter)
    if splitter != pipeline.settings.splitter and not pipeline.kind.divides_text(pipeline.settings):
        text = "{splitter} has no effect on a model of data with `--segments none`: remove it"
        raise OptionError(text, splitter=splitter)
    pipeline.settings = replace(pipeline.settings, splitter=splitter)


def bin_of(folder: Path) -> Path | None:
    """Returns the `bin` directory of a folder of `hat preprocess`, or of its `bin`; None for another folder."""
    return next((each for each in (folder, folder / "bin") if (each / FILE_NAME).is_file()), None)
