"""A kind of data that the package does not have: how similar are two texts? Also a --user-dir for fairseq.

A kind is one class. This one also needs a criterion, because none of the plugin's is for numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

import hat_fairseq  # registers the plugin first  # noqa: F401
from hat_fairseq.criterions.labels import LabelCriterion
from hat_fairseq.data.dictionary import label_of
from hat_fairseq.data.kind import Array, Prediction, register_kind
from hat_fairseq.data.kinds.labels import ClassificationKind
from hat_fairseq.data.record import Record
from hat_fairseq.data.rows import Row
from hat_fairseq.tasks.encoder_task import register_tasks


@dataclass
class Similarity(Prediction):
    score: float


class TextSimilarity(ClassificationKind):
    name, task, criterion = "similarity", "text_similarity", "squared_error"
    num_scores = 1
    details = ""

    def scores(self, logits: Tensor) -> Tensor:
        return logits

    def target(self, label: list[str], tokens: Array, classes: Mapping[str, int]) -> float:
        return float(label_of(label[0]))

    def predict(
        self, record: Record, rows: list[Row], outputs: Sequence[Any], labels: list[str], options: Any = None
    ) -> Similarity:
        return Similarity(record.id, float(outputs[0][0]))


@register_criterion("squared_error", dataclass=FairseqDataclass)
class SquaredError(LabelCriterion):
    name = "squared_error"

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        return F.mse_loss(logits.squeeze(-1), target, reduction="sum"), len(target), {}

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        pass


register_kind(TextSimilarity())
register_tasks()
