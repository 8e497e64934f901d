"""A kind of data that the package does not have: how similar are two texts? Also a --user-dir for fairseq.

These are all the places that a new kind touches: a `Kind`, a task with its targets, and the form of its predictions
(and, because none of the plugin's criterions is for numbers, a criterion).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from torch import Tensor

import hat_fairseq  # registers the plugin first  # noqa: F401
from hat_fairseq.criterions.labels import LabelCriterion
from hat_fairseq.data.encode_examples import encode_pair
from hat_fairseq.data.kinds import KINDS, Kind
from hat_fairseq.data.labels import label_of
from hat_fairseq.data.records import LabelledText
from hat_fairseq.inference.assemble import ASSEMBLERS, Assembler
from hat_fairseq.tasks.config import EncoderTaskConfig
from hat_fairseq.tasks.encoder_task import EncoderTask
from hat_fairseq.tasks.row_targets import RowTargets

KINDS["similarity"] = Kind(
    name="similarity",
    task="text_similarity",
    record=LabelledText,
    encode=encode_pair,
)


class NumberTargets(RowTargets):
    def __call__(self, index: int, tokens: Tensor, keep: Any) -> Tensor:
        return torch.tensor(float(label_of(self.dictionary.string(self.labels[index]))))


@register_task("text_similarity", dataclass=EncoderTaskConfig)
class TextSimilarityTask(EncoderTask):
    kind = "similarity"
    num_scores = 1
    targets_class = NumberTargets

    def scores(self, logits: Tensor) -> Tensor:
        return logits


class NumberAssembler(Assembler):
    def part(self, index: int, output: Tensor) -> Any:
        return {"id": self.samples[index].document_id, "score": float(output)}


ASSEMBLERS["similarity"] = NumberAssembler


@register_criterion("squared_error", dataclass=FairseqDataclass)
class SquaredError(LabelCriterion):
    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        return F.mse_loss(logits.squeeze(-1), target, reduction="sum"), len(target), {}

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        pass
