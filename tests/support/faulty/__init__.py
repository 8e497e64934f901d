"""A `--user-dir` whose criterion fails where a test says: `--fault KIND:PROCESS:BATCH`, the batches counted from 1."""

import os
import signal
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)

import hat_fairseq.register

hat_fairseq.register.register()


@dataclass
class FaultyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    fault: str = field(default="none:0:0", metadata={"help": "what happens where"})


@register_criterion("faulty", dataclass=FaultyConfig)
class Faulty(LabelSmoothedCrossEntropyCriterion):
    def __init__(self, task: Any, sentence_avg: bool, label_smoothing: float, fault: str) -> None:
        super().__init__(task, sentence_avg, label_smoothing)
        self.kind, self.rank, self.batch = fault.split(":")
        self.batches = 0

    def forward(self, model: Any, sample: Any, reduce: bool = True) -> Any:
        self.batches += model.training
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        if model.training and rank == int(self.rank) and self.batches == int(self.batch):
            if self.kind == "oom":
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
            if self.kind == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kind == "sleep":
                time.sleep(60)
        return super().forward(model, sample, reduce)
