"""The criterion `chunked_label_smoothed_cross_entropy`: label smoothing without all logits in memory.

Flags, values, gradients and logs are those of fairseq's `label_smoothed_cross_entropy`; it needs less memory and time.
The decoder must end in a linear projection without bias, as in our models and fairseq's `transformer` and `bart`.
"""

from typing import Any

from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor, nn

from ..kernels import chunked_label_smoothed_loss

NAME = "chunked_label_smoothed_cross_entropy"


@register_criterion(NAME, dataclass=LabelSmoothedCrossEntropyCriterionConfig)
class ChunkedLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """Label-smoothed cross-entropy, in chunks of target positions."""

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Returns the loss summed over target tokens, the sample size, and what is logged.

        Args:
            reduce: False asks for the loss of every token, which fairseq's own computation gives.
        Raises:
            ValueError: the model has no output projection, or one with a bias.
        """
        if not reduce:
            return super().forward(model, sample, reduce)
        weight = projection_of(model)
        features = model(**sample["net_input"], features_only=True)[0][:, self.ignore_prefix_size :]
        target = sample["target"][:, self.ignore_prefix_size :]
        loss, nll_loss, correct = chunked_label_smoothed_loss(
            features, weight, target, self.eps, self.padding_idx, self.report_accuracy
        )
        sample_size = len(target) if self.sentence_avg else sample["ntokens"]
        log = {"loss": loss.detach(), "nll_loss": nll_loss.detach(), "ntokens": sample["ntokens"]}
        log |= {"nsentences": len(target), "sample_size": sample_size}
        if self.report_accuracy:
            log["n_correct"], log["total"] = utils.item(correct), utils.item(target.ne(self.padding_idx).sum())
        return loss, sample_size, log


def projection_of(model: Any) -> Tensor:
    """Returns the (V, C) weight of the decoder's output projection; ValueError if there is none, or it has a bias."""
    projection = getattr(getattr(model, "decoder", None), "output_projection", None)
    if not isinstance(projection, nn.Linear) or projection.bias is not None:
        raise ValueError(
            f"{NAME} needs a model with decoder.output_projection without bias, which {type(model).__name__} has not: "
            "use --criterion label_smoothed_cross_entropy"
        )
    return projection.weight
