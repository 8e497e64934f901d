"""`Loaded`: trained models with what belongs to them, whatever they were loaded from; see `loading.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..data.dictionary import Dictionary
from ..data.pipeline import TextPipeline
from ..kernels import set_precision

Data = str | Path | None


@dataclass
class Loaded:
    """Trained models in evaluation mode, and what belongs to them.

    Attributes:
        paths: of the checkpoints or folders.
        source, target: the dictionaries of the texts; an encoder has one.
        roles: that of the roles of speakers; None without.
        longest: tokens of the longest source, `</s>` included.
        labels: the names of the classes of an encoder with labels.
        architecture: the registered name of the network.
        precision: one of `kernels.precision.PRECISIONS`.
        parameters: how many scalars the models have.
        task: that of fairseq; None for networks that were built without it.
    """

    paths: list[str]
    models: list[Any]
    pipeline: TextPipeline
    source: Dictionary
    target: Dictionary
    roles: Dictionary | None
    longest: int
    labels: list[str]
    architecture: str
    precision: str = "fp32"
    parameters: int = 0
    task: Any = None

    @property
    def device(self) -> torch.device:
        return next(self.models[0].parameters()).device


def check_labels(labels: Mapping[str, list[str]]) -> None:
    """Raises ValueError for models of an ensemble whose classes have other names, by the paths of the models."""
    first, *others = labels
    for path in others:
        if labels[path] != labels[first]:
            raise ValueError(f"{path} has other labels than {first}: {labels[path]!r:.80}, {labels[first]!r:.80}")


def make_ready(models: list[Any], device: str, precision: str) -> int:
    """Prepares models for inference, in place; returns how many parameters they have."""
    parameters = sum(parameter.numel() for model in models for parameter in model.parameters())
    for model in models:
        model.to(device).eval()
        set_precision(model, precision)
    return parameters
