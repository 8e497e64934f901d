"""The criterion `evidence`: is a turn or sentence part of the answer to a question?

The loss is the binary cross-entropy of all pairs of a question and a unit, the mean of each document, summed over
documents. In validation two figures are logged, in percent, over the questions that have evidence in the row:

    average_precision   mean over questions of the average precision of their units in the order of their scores
    evidence_f1         mean over questions of 2 TP / (2 TP + FP + FN), at the best of the `THRESHOLDS`

The task keeps this threshold in the model. What preprocessing has truncated is not in the row; `hat score` counts it.

Legend: B documents, L pairs of the document with most, N units, K thresholds.
"""

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from ..data.kinds.evidence import count_questions_and_units
from .labels import LabelCriterion, percent

THRESHOLDS = torch.arange(1, 100) / 100
F1_SUMS = "_f1_by_threshold"  # (K,) sums over questions; not shown


@register_criterion("evidence", dataclass=FairseqDataclass)
class EvidenceCriterion(LabelCriterion):
    """For the task `document_evidence`."""

    name = "evidence"

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        labelled = target.ge(0)
        losses = F.binary_cross_entropy_with_logits(logits, target.clamp(min=0).to(logits), reduction="none")
        loss = (losses.masked_fill(~labelled, 0).sum(dim=1) / labelled.sum(dim=1)).sum()
        return loss, len(target), {}

    def figures(self, logits: Tensor, sample: dict[str, Any]) -> dict[str, Any]:
        return figures(logits, sample["target"], sample["net_input"]["src_tokens"])

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        if F1_SUMS not in logging_outputs[0]:
            return
        for name in ("_questions", "_average_precisions", F1_SUMS):
            metrics.log_scalar_sum(name, sum(log[name] for log in logging_outputs))
        metrics.log_derived(
            "average_precision", lambda meters: percent(*(meters[n].sum for n in ("_average_precisions", "_questions")))
        )
        metrics.log_derived("evidence_f1", lambda meters: percent(max(meters[F1_SUMS].sum), meters["_questions"].sum))


def figures(logits: Tensor, target: Tensor, tokens: Tensor) -> dict[str, Any]:
    """Computes the sums over questions with evidence of average precision and of F1 at each threshold.

    Args:
        logits, target: (B, L).
        tokens: (B, T) ids.
    """
    probabilities, asked = logits.float().sigmoid().cpu(), 0
    precisions, by_threshold = 0.0, torch.zeros(len(THRESHOLDS), dtype=torch.float64)
    for row, gold, ids in zip(probabilities, target.cpu(), tokens.cpu(), strict=True):
        questions, units = count_questions_and_units(ids)
        size = questions * units
        for scores, labels in zip(row[:size].view(questions, -1), gold[:size].view(questions, -1).bool(), strict=True):
            if labels.any():
                asked += 1
                precisions += average_precision(scores, labels)
                by_threshold += f1_by_threshold(scores, labels)
    return {"_questions": asked, "_average_precisions": precisions, F1_SUMS: by_threshold}


def average_precision(scores: Tensor, labels: Tensor) -> float:
    """Computes the mean of the precision at each (N,) True label, in the order of the scores; ties stay in order."""
    ranked = labels[scores.argsort(descending=True, stable=True)].double()
    precision = ranked.cumsum(dim=0) / torch.arange(1, len(ranked) + 1)
    return float((precision * ranked).sum() / ranked.sum())


def f1_by_threshold(scores: Tensor, labels: Tensor) -> Tensor:
    """Computes the F1 of the units whose probability reaches each of the `THRESHOLDS`: (K,)."""
    chosen = scores >= THRESHOLDS.unsqueeze(1)
    right = (chosen & labels).sum(dim=1).double()
    return 2 * right / (chosen.sum(dim=1) + labels.sum())
