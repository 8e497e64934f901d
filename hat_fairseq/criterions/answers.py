"""The criterions for answers to questions: `answer_spans` and `document_answers`.

`answer_spans` is the mean of two cross-entropies over the tokens of a row: of the answer's first token and of its last
token, as for BERT on SQuAD (Devlin et al. 2019, section 4.2). If a row has several answers, any of them is right: the
probabilities of their first tokens are added, and those of their last tokens (Clark and Gardner 2018, section 2.3;
Longformer does the same on TriviaQA). It logs, in percent of the rows, which are windows of texts: `accuracy`, the rows
whose best valid span is a labelled one (or "no answer"), and `has_answer_accuracy`, the same among rows with an answer.
`hat score squad` scores answers as texts.

`document_answers` is the mean of three cross-entropies: `answer_spans`, the paragraph of the answer (or none), and the
type of the answer. It also logs `paragraph_accuracy` and `type_accuracy`.
"""

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from .labels import Distributions, LabelCriterion, log_loss, percent

SUMS = ("rows", "exact", "answers", "exact_answers")  # of `answer_spans`
MORE_SUMS = ("right_paragraphs", "right_types")  # further ones of `document_answers`


@register_criterion("answer_spans", dataclass=FairseqDataclass)
class AnswerSpans(LabelCriterion):
    """For the task `question_answering`."""

    name = "answer_spans"

    def compute(self, logits: Tensor, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        spans = target.unflatten(1, (-1, 2))  # (B, S, 2)
        spans = torch.where(spans < 0, spans[:, :1], spans)  # a row with fewer repeats its first one
        right = torch.zeros_like(logits, dtype=torch.bool).scatter(1, spans, True)
        loss = -logits.log_softmax(dim=1).masked_fill(~right, float("-inf")).logsumexp(dim=1).sum() / 2
        exact, answers = (best_spans(logits)[:, None] == spans).all(dim=2).any(dim=1), spans[:, 0, 1].gt(0)
        sums = (len(target), exact.sum(), answers.sum(), (exact & answers).sum())
        return loss, len(target), dict(zip(SUMS, sums, strict=True))

    def distributions(self, logits: Tensor, target: Tensor) -> Distributions:
        """Returns the first and the last token of the answer in each row."""
        return [(logits.transpose(1, 2).flatten(0, 1), 1 / 2)]

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

    name = "document_answers"

    def compute(self, logits: Any, target: Tensor) -> tuple[Tensor, int, dict[str, Any]]:
        loss, rows, log = super().compute(logits["span"], target[:, :2])
        for name, wanted, which in zip(MORE_SUMS, target[:, 2:].T, ("paragraph", "type"), strict=True):
            loss = loss + F.cross_entropy(logits[which], wanted, reduction="sum")
            log[name] = logits[which].argmax(dim=1).eq(wanted).sum()
        return loss / 3, rows, log

    def distributions(self, logits: Any, target: Tensor) -> Distributions:
        """Returns the distributions of `answer_spans`, of the paragraph and of the type."""
        spans = super().distributions(logits["span"], target)
        pairs = [*spans, (logits["paragraph"], 1.0), (logits["type"], 1.0)]
        return [(distribution, weight / 3) for distribution, weight in pairs]

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
