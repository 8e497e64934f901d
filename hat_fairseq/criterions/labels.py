"""The criterions of labelled tasks: `document_labels`, cross-entropy of classes; `answer_spans`, `document_answers`.

`document_labels` is for a class for each document, segment or token, or the right choice. Positions without a label
(target -100) are ignored. Accuracy and F1, in percent, are computed from counts summed over batches, processes and
updates, so they are those of the whole split:

    accuracy   right / all
    f1_micro   2 TP / (2 TP + FP + FN) over all classes; with one label each it equals accuracy
    f1_macro   mean of 2 TP / (2 TP + FP + FN) over the classes that occur among labels or predictions

as in scikit-learn. F1 is omitted for multiple choice.

`answer_spans` is the mean of the cross-entropies of the first and the last token of an answer over the tokens of a row,
as for BERT on SQuAD (Devlin et al. 2019, section 4.2). Logged for rows, which are windows of texts, in percent:
`accuracy`, the share of rows whose best valid span is exactly the labelled one (no answer included), and
`has_answer_accuracy`, the same among rows with an answer. `hat score squad` scores answers as texts.

`document_answers` is the mean of three cross-entropies over the heads of `document_question_answering`: that of
`answer_spans`, of the paragraph (or none), and of the type of the answer. It also logs `paragraph_accuracy` and
`type_accuracy`.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

COUNTS = "_label_counts"  # (K, 3) true positives, false positives, false negatives; not shown
SUMS = ("rows", "exact", "answers", "exact_answers")  # of `answer_spans`
MORE_SUMS = ("right_paragraphs", "right_types")  # of `document_answers`, beside them


class LabelCriterion(FairseqCriterion):
    """For tasks with `logits`. A subclass computes the loss."""

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss summed over the labels, or the rows of `answer_spans`; their number; and what is logged.

        Raises:
            ValueError: a split without labels.
        """
        if sample["target"] is None:
            raise ValueError(
                "the split has no labels (label/ has no file for it): train and validate on one that has them"
            )
        logits = self.task.logits(model, sample)
        logits = logits.float() if isinstance(logits, Tensor) else logits  # several heads are fp32 already
        loss, sample_size, log = self.compute(logits, sample["target"])
        log |= {name: sample[name] for name in ("ntokens", "nsentences")}
        return loss, sample_size, log | {"loss": loss.detach(), "sample_size": sample_size}

    def compute(self, logits: Any, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss, the number of labels, and the sums that figures are derived from."""
        raise NotImplementedError

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


@register_criterion("document_labels", dataclass=FairseqDataclass)
class DocumentLabels(LabelCriterion):
    """For all labelled tasks that are not about answers."""

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        if getattr(task, "kind", "qa") in ("qa", "document_qa"):
            raise ValueError(
                "the criterion document_labels is for the tasks document_classification, multiple_choice, "
                "segment_classification and token_classification"
            )

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        logits, target = logits.flatten(0, -2), target.flatten()
        labelled = target.ge(0)
        loss = F.cross_entropy(logits, target, reduction="sum")
        predicted, target = logits.argmax(dim=-1)[labelled], target[labelled]
        log = {"correct": predicted.eq(target).sum()}
        if self.task.labels:
            log[COUNTS] = counts(predicted, target, len(self.task.labels))
        return loss, len(target), log

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


@register_criterion("answer_spans", dataclass=FairseqDataclass)
class AnswerSpans(LabelCriterion):
    """For the task `question_answering`."""

    kind, name, of_task = "qa", "answer_spans", "question_answering"

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        if getattr(task, "kind", "") != self.kind:
            raise ValueError(f"the criterion {self.name} is for the task {self.of_task}")

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        loss = F.cross_entropy(logits.transpose(1, 2).flatten(0, 1), target.flatten(), reduction="sum") / 2
        exact, answers = best_spans(logits).eq(target).all(dim=1), target[:, 1].gt(0)
        sums = (len(target), exact.sum(), answers.sum(), (exact & answers).sum())
        return loss, len(target), dict(zip(SUMS, sums, strict=True))

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Logs the loss in bits, and the sums that the accuracies are derived from."""
        log_loss(logging_outputs)
        for name in SUMS:
            metrics.log_scalar_sum(f"_{name}", float(sum(log[name] for log in logging_outputs)))
        metrics.log_derived("accuracy", lambda meters: percent(meters["_exact"].sum, meters["_rows"].sum))
        metrics.log_derived(
            "has_answer_accuracy", lambda meters: percent(meters["_exact_answers"].sum, meters["_answers"].sum)
        )


@register_criterion("document_answers", dataclass=FairseqDataclass)
class DocumentAnswers(AnswerSpans):
    """For the task `document_question_answering`."""

    kind, name, of_task = "document_qa", "document_answers", "document_question_answering"

    def compute(self, logits: Any, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        loss, rows, log = super().compute(logits["span"], target[:, :2])
        for name, wanted, which in zip(MORE_SUMS, target[:, 2:].T, ("paragraph", "type"), strict=True):
            loss = loss + F.cross_entropy(logits[which], wanted, reduction="sum")
            log[name] = logits[which].argmax(dim=1).eq(wanted).sum()
        return loss / 3, rows, log

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Logs what `answer_spans` does, and the accuracies of paragraphs and types."""
        AnswerSpans.reduce_metrics(logging_outputs)
        for name, which in zip(MORE_SUMS, ("paragraph", "type"), strict=True):
            metrics.log_scalar_sum(f"_{name}", float(sum(log[name] for log in logging_outputs)))
            metrics.log_derived(
                f"{which}_accuracy",
                lambda meters, name=name: percent(meters[f"_{name}"].sum, meters["_rows"].sum),
            )


def best_spans(logits: Tensor) -> Tensor:
    """First and last token of the best span of each row. O(T), also for long rows.

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


def counts(predicted: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """(N,) predictions and (N,) targets -> (K, 3) true positives, false positives, false negatives."""
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
    """Rounded to what is shown; 0 of 0 is 0."""
    return round(100 * float(part) / float(whole), 3) if whole else 0.0


def log_loss(logging_outputs: list[dict[str, Any]]) -> float:
    """Logs `loss` as fairseq does, in bits a label, and returns the number of labels."""
    total = float(sum(log["sample_size"] for log in logging_outputs))
    loss = float(sum(log["loss"] for log in logging_outputs))
    metrics.log_scalar("loss", loss / max(total, 1) / math.log(2), total, round=3)
    return total
