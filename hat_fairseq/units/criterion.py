"""The criterion `evidence`: is a turn or sentence part of a passage, a line, and does a document answer a question?

The loss is the binary cross-entropy of all pairs of a question and a unit, the mean of each document for passages and
for lines, as far as they are known, with `LINE_WEIGHT` on units that are lines; plus `ANSWER_SHARE` of that of the
questions, whether the document answers them. It is summed over documents. In validation these figures are logged, in
percent, over the questions that have such evidence in the row:

    average_precision, line_average_precision   mean over questions of the average precision of their units in the order
                                                of their scores
    mean_average_precision                      the mean of those of the two that are known
    evidence_f1, line_f1                        mean over questions of 2 TP / (2 TP + FP + FN), at the best threshold
    answer_auroc                                how probably a question that the document answers has a greater
                                                probability of an answer than one that it does not answer

A threshold is a probability, or a distance of log-odds from the best unit of the question. The task keeps the best one
in the model. What preprocessing has truncated is not in the row; `hat score` counts it.

Legend: B documents, L scores of the document with most, Q questions, N units, K thresholds.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from ..criterions.labels import LabelCriterion, percent
from .evidence import OF_DOCUMENT, count_questions_and_units
from .evidence_head import OUTPUTS
from .scores import RECALL, average_precision

THRESHOLDS = torch.arange(1, 100) / 100  # probabilities
MARGINS = torch.arange(1, 61) / 10  # below the log-odds of the question's best unit
LINE_WEIGHT = 3.0  # lines are few
ANSWER_SHARE = 0.3
BINS = 1000  # of probabilities of an answer
NAMES = {"passage": ("average_precision", "evidence_f1"), "line": ("line_average_precision", "line_f1")}
ANSWERS = "_answers"  # (2, BINS) questions without and with an answer by their probability; not printed


@register_criterion("evidence", dataclass=FairseqDataclass)
class EvidenceCriterion(LabelCriterion):
    """For the task `document_evidence`."""

    name = "evidence"

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        is_line = torch.arange(logits.size(1), device=logits.device) % len(OUTPUTS) == OUTPUTS.index("line")
        weights = torch.where(is_line, LINE_WEIGHT, 1.0).to(logits)
        losses = F.binary_cross_entropy_with_logits(
            logits, target.remainder(2).to(logits), reduction="none", pos_weight=weights
        )
        of_document, of_unit = target.ge(OF_DOCUMENT), target.ge(0) & target.lt(OF_DOCUMENT)
        parts = [(of_unit & ~is_line, 1.0), (of_unit & is_line, 1.0), (of_document, ANSWER_SHARE)]
        loss = sum((share * mean_where(losses, mask) for mask, share in parts), logits.new_zeros(()))
        return loss, len(target), {}

    def figures(self, logits: Tensor, sample: dict[str, Any]) -> dict[str, Any]:
        return sums_over_questions(logits, sample["target"], sample["net_input"]["src_tokens"])

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        if ANSWERS not in logging_outputs[0]:
            return
        for name in SUM_NAMES:
            metrics.log_scalar_sum(name, sum(log[name] for log in logging_outputs))
        for output, (precision, f1) in NAMES.items():
            asked, precisions, f1s = sum_names(output)
            if sum(log[asked] for log in logging_outputs):
                metrics.log_derived(precision, lambda meters, names=(precisions, asked): share_of(meters, *names))
                metrics.log_derived(
                    f1, lambda meters, names=(f1s, asked): percent(max(meters[names[0]].sum), meters[names[1]].sum)
                )
        metrics.log_derived("mean_average_precision", mean_average_precision)
        if all(sum(log[ANSWERS] for log in logging_outputs).sum(dim=1)):
            metrics.log_derived("answer_auroc", lambda meters: round(100 * auroc_of_counts(meters[ANSWERS].sum), 3))


def mean_where(losses: Tensor, mask: Tensor) -> Tensor:
    """Sums over the rows of (B, L) losses their mean where a (B, L) mask is True; 0 for a row without such a place."""
    return (losses.masked_fill(~mask, 0).sum(dim=1) / mask.sum(dim=1).clamp(min=1)).sum()


def sum_names(output: str) -> tuple[str, str, str]:
    """Returns the names of what is summed of an output: questions, average precisions, (K,) F1 by threshold."""
    return f"_{output}_questions", f"_{output}_precisions", f"_{output}_f1s"


SUM_NAMES = (*(name for output in OUTPUTS for name in sum_names(output)), ANSWERS)


def share_of(meters: Mapping[str, Any], part: str, whole: str) -> float:
    return percent(meters[part].sum, meters[whole].sum)


def mean_average_precision(meters: Mapping[str, Any]) -> float:
    """Computes the mean of the average precisions of the outputs for which a question has evidence."""
    known = [sum_names(output)[:2] for output in OUTPUTS if meters[sum_names(output)[0]].sum]
    return round(sum(share_of(meters, part, whole) for whole, part in known) / max(1, len(known)), 3)


def sums_over_questions(logits: Tensor, target: Tensor, tokens: Tensor) -> dict[str, Any]:
    """Computes the `SUM_NAMES` over questions.

    Args:
        logits, target: (B, L).
        tokens: (B, T) ids.
    """
    sums: dict[str, Any] = dict.fromkeys(SUM_NAMES, 0)
    for output in OUTPUTS:
        sums[sum_names(output)[2]] = torch.zeros(len(THRESHOLDS) + len(MARGINS), dtype=torch.float64)
    sums[ANSWERS] = torch.zeros(2, BINS, dtype=torch.float64)
    for scores, gold in questions_of(logits.float().cpu(), target.cpu(), tokens.cpu()):
        if gold[0, 0] >= OF_DOCUMENT:
            place = min(BINS - 1, int(BINS * scores[0].sigmoid().mean()))
            sums[ANSWERS][int(gold[0, 0]) - OF_DOCUMENT, place] += 1
        for number, output in enumerate(OUTPUTS):
            asked, precisions, f1s = sum_names(output)
            known = gold[1:, number] >= 0
            if (labels := gold[1:, number][known].bool()).any():
                sums[asked] += 1
                sums[precisions] += average_precision(scores[1:, number][known].numpy(), labels.numpy())
                sums[f1s] += f1_by_threshold(scores[1:, number][known], labels)
    return sums


def questions_of(logits: Tensor, target: Tensor, tokens: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the (1 + N, 2) logits and targets of each question of a batch."""
    for row, gold, ids in zip(logits, target, tokens, strict=True):
        questions, units = count_questions_and_units(ids)
        shape = (questions, 1 + units, len(OUTPUTS))
        size = questions * (1 + units) * len(OUTPUTS)
        yield from zip(row[:size].view(shape), gold[:size].view(shape), strict=True)


def f1_by_threshold(logits: Tensor, labels: Tensor) -> Tensor:
    """Computes the F1 of the units that reach each of the `THRESHOLDS`, then each of the `MARGINS`: (K,)."""
    limits = torch.cat([THRESHOLDS.logit(), logits.max() - MARGINS])
    chosen = logits >= limits.unsqueeze(1)
    right = (chosen & labels).sum(dim=1).double()
    return 2 * right / (chosen.sum(dim=1) + labels.sum())


def auroc_of_counts(answers: Tensor) -> float:
    """Computes the area under the ROC curve from (2, BINS) counts of negatives and positives; a tie counts half."""
    negatives, positives = answers
    below = negatives.cumsum(0) - negatives / 2
    return float((positives * below).sum() / (positives.sum() * negatives.sum()))


def set_thresholds(sums: Mapping[str, Any], head: Any) -> None:
    """Sets the thresholds of a head to the best ones of a validation, from its `SUM_NAMES`; without evidence, to -1.

    A document answers a question from the probability on that `RECALL` of the questions with an answer reach.
    """
    for number, output in enumerate(OUTPUTS):
        asked, _, f1s = sum_names(output)
        best = int(torch.as_tensor(sums[f1s]).argmax())
        relative = best >= len(THRESHOLDS)
        value = MARGINS[best - len(THRESHOLDS)] if relative else THRESHOLDS[best]
        head.thresholds[number] = value if sums[asked] else -1.0
        head.relative[number] = relative and bool(sums[asked])
    without, with_answer = torch.as_tensor(sums[ANSWERS])
    answered = int(with_answer.sum())
    missed = answered - math.ceil(RECALL * answered)  # as many may be below the threshold
    head.answers.fill_(int((with_answer.cumsum(0) <= missed).sum()) / BINS if without.sum() and answered else 0.0)
