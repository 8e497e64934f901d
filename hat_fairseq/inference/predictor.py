"""Probabilities of batches from fine-tuned encoders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq import utils
from torch import Tensor

from ..tasks.encoder_task import EncoderTask
from .loading import load_models


class Predictor:
    """An ensemble of models with the task that they were fine-tuned on.

    Args:
        models: at least one.
        task: their task, which has built them.
    """

    def __init__(self, models: list[Any], task: EncoderTask) -> None:
        self.models = [model.eval() for model in models]
        self.task = task
        self.device = next(self.models[0].parameters()).device

    @classmethod
    def load(
        cls, checkpoints: str, data: str | Path, device: str | None = None, precision: str = "fp32", **overrides: Any
    ) -> Predictor:
        """Loads checkpoints of a task with labels; see `loading.load_models`, also for errors."""
        return cls(*load_models(checkpoints, data, EncoderTask, device, precision, **overrides))

    @torch.no_grad()
    def __call__(self, sample: dict[str, Any]) -> Tensor:
        """Computes the mean of the models' probabilities; for `qa` of their logits, which windows are compared by.

        Returns:
            In fp32 on the CPU, in the shape of `task.logits`: for padded rows with padded outputs.
        """
        sample = utils.move_to_cuda(sample, self.device) if self.device.type == "cuda" else sample
        logits = [self.task.logits(model, sample).float() for model in self.models]
        outputs = logits if self.task.kind == "qa" else [scores.softmax(dim=-1) for scores in logits]
        return torch.stack(outputs).mean(dim=0).cpu()

    def outputs(self, samples: Iterable[dict[str, Any]]) -> Iterator[tuple[int, Tensor]]:
        """Yields the index of each row (for choices: of each example) in the dataset, and its part of the outputs."""
        for sample in samples:
            yield from zip(sample["id"].tolist(), self(sample), strict=True)
