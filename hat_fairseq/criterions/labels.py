"""Criterions of the labelled tasks: `document_labels` for classes and choices, and two for answers to questions.

`document_labels` is the cross-entropy of classes of documents, segments or tokens, and of choices; positions without a
label (target -100) are ignored. Accuracy and F1, in percent, are computed from counts summed over batches, processes
and updates, so they are those of the whole split, as in scikit-learn. What preprocessing has truncated is not in the
rows; `hat score` counts it as wrong:

    accuracy   right / all
    f1_micro   2 TP / (2 TP + FP + FN) over all classes; with one label each it equals accuracy
    f1_macro   mean of 2 TP / (2 TP + FP + FN) over the classes that occur among labels or predictions

`answer_spans` is the mean of two cross-entropies over the tokens of a row: of the answer's first token and of its last
token, as for BERT on SQuAD (Devlin et al. 2019, section 4.2). If a row has several answers, any of them is right: the
probabilities of their first tokens are added, and those of their last tokens (Clark and Gardner 2018, section 2.3;
Longformer does the same on TriviaQA). It logs, in percent of the rows, which are windows of texts: `accuracy`, the rows
whose best valid span is a labelled one (or "no answer"), and `has_answer_accuracy`, the same among rows with an answer.

`document_answers` is the mean of three cross-entropies: `answer_spans`, the paragraph of the answer (or none), and the
type of the answer. It also logs `paragraph_accuracy` and `type_accuracy`.
"""

import math
from abc import ABC, abstractmethod
from itertools import chain
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

COUNTS = "_label_counts"  # (K, 3) true positives, false positives, false negatives; not printed

#: (N, K) logits of the distributions that a loss sums over, -inf where no probability is, and their weight in it.
Distributions = list[tuple[Tensor, float]]


class LabelCriterion(FairseqCriterion, ABC):
    """Base of the criterions for labels and answers. The task computes the logits, a subclass the loss."""

    name: ClassVar[str]  # as `--criterion` takes it
    #: Figures in percent, each of two counts among what `compute` returns: the part and the whole.
    shares: ClassVar[dict[str, tuple[str, str]]] = {}

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        if (expected := getattr(task, "default_criterion", None)) != self.name:
            raise ValueError(f"the criterion {self.name} is not for this task: give --criterion {expected}")

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Returns the loss summed over labels (or rows, for answers), their number, and what is logged."""
        outputs = self.outputs(model, sample)
        loss, sample_size, log = self.compute(outputs, sample["target"])
        if not model.training:
            log |= self.figures(outputs, sample)
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

    def figures(self, logits: Any, sample: dict[str, Any]) -> dict[str, Any]:
        """Returns further sums that figures of a validation are derived from."""
        return {}

    def distributions(self, logits: Any, target: Tensor) -> Distributions:
        """Returns the distributions that `compute` sums over; ValueError for a loss without probabilities."""
        raise ValueError(f"{type(self).__name__} has no probabilities that self-attention regularization could compare")

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Logs `loss` as fairseq does, in bits a label, and the shares."""
        total, loss = (float(sum(log[name] for log in logging_outputs)) for name in ("sample_size", "loss"))
        metrics.log_scalar("loss", loss / max(total, 1) / math.log(2), total, round=3)
        for count in dict.fromkeys(chain(*cls.shares.values())):
            metrics.log_scalar_sum(f"_{count}", float(sum(log[count] for log in logging_outputs)))
        for name, counts in cls.shares.items():
            metrics.log_derived(name, lambda meters, counts=counts: percent(*(meters[f"_{n}"].sum for n in counts)))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


@register_criterion("document_labels", dataclass=FairseqDataclass)
class DocumentLabels(LabelCriterion):
    """For all labelled tasks but those of answers."""

    name = "document_labels"
    shares = {"accuracy": ("correct", "labels")}

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        logits, target = logits.flatten(0, -2), target.flatten()
        labelled = target.ge(0)
        loss = F.cross_entropy(logits, target, reduction="sum")
        predicted, target = logits.argmax(dim=-1)[labelled], target[labelled]
        log = {"correct": predicted.eq(target).sum(), "labels": len(target)}
        if self.task.labels:
            log[COUNTS] = counts(predicted, target, len(self.task.labels))
        return loss, len(target), log

    def distributions(self, logits: Tensor, target: Tensor) -> Distributions:
        return [(logits.flatten(0, -2)[target.flatten().ge(0)], 1.0)]

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        super().reduce_metrics(logging_outputs)
        if COUNTS in logging_outputs[0]:
            metrics.log_scalar_sum(COUNTS, sum(log[COUNTS] for log in logging_outputs).double().cpu())
            metrics.log_derived("f1_micro", lambda meters: f1_micro(meters[COUNTS].sum))
            metrics.log_derived("f1_macro", lambda meters: f1_macro(meters[COUNTS].sum))


@register_criterion("answer_spans", dataclass=FairseqDataclass)
class AnswerSpans(LabelCriterion):
    """For the task `question_answering`."""

    name = "answer_spans"
    shares = {"accuracy": ("exact", "rows"), "has_answer_accuracy": ("exact_answers", "answers")}

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        spans = target.unflatten(1, (-1, 2))  # (B, S, 2)
        spans = torch.where(spans < 0, spans[:, :1], spans)  # a row with fewer repeats its first one
        right = torch.zeros_like(logits, dtype=torch.bool).scatter(1, spans, True)
        loss = -logits.log_softmax(dim=1).masked_fill(~right, float("-inf")).logsumexp(dim=1).sum() / 2
        exact, answers = (best_spans(logits)[:, None] == spans).all(dim=2).any(dim=1), spans[:, 0, 1].gt(0)
        log = {"exact": exact.sum(), "answers": answers.sum(), "exact_answers": (exact & answers).sum()}
        return loss, len(target), log | {"rows": len(target)}

    def distributions(self, logits: Tensor, target: Tensor) -> Distributions:
        return [(logits.transpose(1, 2).flatten(0, 1), 1 / 2)]


@register_criterion("document_answers", dataclass=FairseqDataclass)
class DocumentAnswers(AnswerSpans):
    """For the task `document_question_answering`."""

    name = "document_answers"
    shares = AnswerSpans.shares | {f"{which}_accuracy": (f"right_{which}s", "rows") for which in ("paragraph", "type")}

    def compute(self, logits: Any, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        loss, rows, log = super().compute(logits["span"], target[:, :2])
        for which, wanted in zip(("paragraph", "type"), target[:, 2:].T, strict=True):
            loss = loss + F.cross_entropy(logits[which], wanted, reduction="sum")
            log[f"right_{which}s"] = logits[which].argmax(dim=1).eq(wanted).sum()
        return loss / 3, rows, log

    def distributions(self, logits: Any, target: Tensor) -> Distributions:
        spans = super().distributions(logits["span"], target)
        pairs = [*spans, (logits["paragraph"], 1.0), (logits["type"], 1.0)]
        return [(distribution, weight / 3) for distribution, weight in pairs]


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


def best_spans(logits: Tensor) -> Tensor:
    """Returns the first and the last token of the best span of each row. O(T), also for long rows.

    Args:
        logits: (B, T, 2) scores to be first and last; token 0, as both, stands for no answer.
    Returns:
        (B, 2).
    """
    start, end = logits[..., 0], logits[..., 1]
    none = start[:, 0] + end[:, 0]
    start, end = (scores.index_fill(1, scores.new_zeros(1, dtype=torch.long), float("-inf")) for scores in (start, end))
    # The best end at or after each token: a running maximum from the right.
    best_end, where = end.flip(1).cummax(dim=1)
    best_end, where = best_end.flip(1), end.size(1) - 1 - where.flip(1)
    score, first = (start + best_end).max(dim=1)
    last = where.gather(1, first[:, None]).squeeze(1)
    return torch.stack([first, last], dim=1).masked_fill((none >= score)[:, None], 0)
