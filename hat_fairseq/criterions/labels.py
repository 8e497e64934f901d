"""The criterion `document_labels`: cross-entropy for classes of documents, segments or tokens, and for choices.

Positions without a label (target -100) are ignored. Accuracy and F1, in percent, are computed from counts summed over
batches, processes and updates, so they are those of the whole split:

    accuracy   right / all
    f1_micro   2 TP / (2 TP + FP + FN) over all classes; with one label each it equals accuracy
    f1_macro   mean of 2 TP / (2 TP + FP + FN) over the classes that occur among labels or predictions

as in scikit-learn. F1 is omitted for multiple choice.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

COUNTS = "_label_counts"  # (K, 3) true positives, false positives, false negatives; not shown

#: (N, K) logits of the distributions that a loss sums over, -inf where no probability is, and their weight in it.
Distributions = list[tuple[Tensor, float]]


class LabelCriterion(FairseqCriterion, ABC):
    """Base of the criterions for labels and answers. The task computes the logits, a subclass the loss."""

    name: ClassVar[str]  # as `--criterion` takes it

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        if (expected := getattr(task, "default_criterion", None)) != self.name:
            raise ValueError(f"the criterion {self.name} is not for this task: give --criterion {expected}")

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Returns the loss summed over labels (or rows, for `answer_spans`), their number, and what is logged.

        Raises:
            ValueError: a split without labels.
        """
        loss, sample_size, log = self.compute(self.outputs(model, sample), sample["target"])
        log |= {name: sample[name] for name in ("ntokens", "nsentences")}
        return loss, sample_size, log | {"loss": loss.detach(), "sample_size": sample_size}

    def outputs(self, model: Any, sample: dict[str, Any]) -> Any:
        """Returns the task's logits of a batch, in fp32; ValueError for a split without labels."""
        if sample["target"] is None:
            raise ValueError(
                "the split has no labels (label/ has no file for it): train and validate on one that has them"
            )
        logits = self.task.logits(model, sample)
        return logits.float() if isinstance(logits, Tensor) else logits  # several heads are fp32 already

    @abstractmethod
    def compute(self, logits: Any, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        """Returns the summed loss, the number of labels, and the sums that figures are derived from."""

    def distributions(self, logits: Any, target: Tensor) -> Distributions:
        """Returns the distributions that `compute` sums over; ValueError for a loss without probabilities."""
        raise ValueError(f"{type(self).__name__} has no probabilities that self-attention regularization could compare")

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


@register_criterion("document_labels", dataclass=FairseqDataclass)
class DocumentLabels(LabelCriterion):
    """For all labelled tasks but those of answers (`answers.py`)."""

    name = "document_labels"

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        logits, target = logits.flatten(0, -2), target.flatten()
        labelled = target.ge(0)
        loss = F.cross_entropy(logits, target, reduction="sum")
        predicted, target = logits.argmax(dim=-1)[labelled], target[labelled]
        log = {"correct": predicted.eq(target).sum()}
        if self.task.labels:
            log[COUNTS] = counts(predicted, target, len(self.task.labels))
        return loss, len(target), log

    def distributions(self, logits: Tensor, target: Tensor) -> Distributions:
        """Returns the classes of each document, segment or token with a label."""
        return [(logits.flatten(0, -2)[target.flatten().ge(0)], 1.0)]

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Logs the loss in bits, and the sums that accuracy and F1 are derived from."""
        total = log_loss(logging_outputs)
        metrics.log_scalar_sum("_labels", total)
        metrics.log_scalar_sum("_correct", float(sum(log["correct"] for log in logging_outputs)))
        metrics.log_derived("accuracy", lambda meters: percent(meters["_correct"].sum, meters["_labels"].sum))
        if COUNTS in logging_outputs[0]:
            metrics.log_scalar_sum(COUNTS, sum(log[COUNTS] for log in logging_outputs).double().cpu())
            metrics.log_derived("f1_micro", lambda meters: f1_micro(meters[COUNTS].sum))
            metrics.log_derived("f1_macro", lambda meters: f1_macro(meters[COUNTS].sum))


def counts(predicted: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """Counts (K, 3) true positives, false positives and false negatives of (N,) predictions and targets."""
    true = torch.bincount(target[predicted.eq(target)], minlength=num_classes)
    positives, all_ = (torch.bincount(classes, minlength=num_classes) for classes in (predicted, target))
    return torch.stack([true, positives - true, all_ - true], dim=1)


def f1_micro(table: Tensor) -> float:
    true, false_positives, false_negatives = table.sum(dim=0).tolist()
    return percent(2 * true, 2 * true + false_positives + false_negatives)


def f1_macro(table: Tensor) -> float:
    table = table[table.sum(dim=1) > 0]
    scores = 2 * table[:, 0] / (2 * table[:, 0] + table[:, 1] + table[:, 2])
    return percent(float(scores.sum()), len(scores))


def percent(part: float, whole: float) -> float:
    """Returns a share, rounded to what is shown; 0 of 0 is 0."""
    return round(100 * float(part) / float(whole), 3) if whole else 0.0


def log_loss(logging_outputs: list[dict[str, Any]]) -> float:
    """Logs `loss` as fairseq does, in bits a label, and returns the number of labels."""
    total = float(sum(log["sample_size"] for log in logging_outputs))
    loss = float(sum(log["loss"] for log in logging_outputs))
    metrics.log_scalar("loss", loss / max(total, 1) / math.log(2), total, round=3)
    return total
