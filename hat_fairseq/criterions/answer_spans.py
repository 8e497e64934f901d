"""The criterion `answer_spans`: cross-entropy of the first and the last token of an answer.

The mean of two cross-entropies over the tokens of a row, as for BERT on SQuAD (Devlin et al. 2019, section 4.2). Logged
for rows, which are windows of texts, in percent: `accuracy`, the share of rows whose best valid span is exactly the
labelled one (no answer included), and `has_answer_accuracy`, the same among rows with an answer. `hat score squad`
scores answers as texts.
"""

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from .document_labels import labels_of, log_loss, percent

SUMS = ("rows", "exact", "answers", "exact_answers")


@register_criterion("answer_spans", dataclass=FairseqDataclass)
class AnswerSpans(FairseqCriterion):
    """For the task `question_answering`."""

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        if getattr(task, "kind", "") != "qa":
            raise ValueError("the criterion answer_spans is for the task question_answering")

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss summed over the rows, their number, and what is logged.

        Raises:
            ValueError: a split without labels.
        """
        target = labels_of(sample)
        logits = self.task.logits(model, sample).float()
        loss = F.cross_entropy(logits.transpose(1, 2).flatten(0, 1), target.flatten(), reduction="sum") / 2
        exact, answers = best_spans(logits).eq(target).all(dim=1), target[:, 1].gt(0)
        sums = (len(target), exact.sum(), answers.sum(), (exact & answers).sum())
        return (
            loss,
            len(target),
            {
                "loss": loss.detach(),
                "ntokens": sample["ntokens"],
                "nsentences": sample["nsentences"],
                "sample_size": len(target),
                **dict(zip(SUMS, sums, strict=True)),
            },
        )

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

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


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
