"""The criterion `chunked_label_smoothed_cross_entropy`: label smoothing without all logits in memory.

Flags, values, gradients and logs are those of fairseq's `label_smoothed_cross_entropy`; it needs less memory and time.
The decoder must end in a linear projection without bias, as in our models and fairseq's `transformer` and `bart`.
"""

import contextlib
import inspect
from collections.abc import Iterator
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
        """The loss summed over target tokens, the sample size, and what is logged.

        Args:
            reduce: False asks for the loss of every token, which fairseq's own computation gives.
        Raises:
            ValueError: a model without features or without a plain projection.
        """
        if not reduce:
            return super().forward(model, sample, reduce)
        weight = projection_of(model)
        with _in_the_output(weight, model):
            features = model(**sample["net_input"], features_only=True)[0]
        target = sample["target"]
        loss, nll_loss, correct = chunked_label_smoothed_loss(
            features[:, self.ignore_prefix_size :],
            weight,
            target[:, self.ignore_prefix_size :],
            self.eps,
            self.padding_idx,
            self.report_accuracy,
        )
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        log = {
            "loss": loss.detach(),
            "nll_loss": nll_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        if self.report_accuracy:
            log["n_correct"] = utils.item(correct)
            log["total"] = utils.item(target[:, self.ignore_prefix_size :].ne(self.padding_idx).sum())
        return loss, sample_size, log


@contextlib.contextmanager
def _in_the_output(weight: Tensor, model: Any) -> Iterator[None]:
    """Adds a row of `weight` to the model's output, from which DDP searches for unused parameters."""
    hook = _bare(model).register_forward_hook(lambda module, inputs, output: (*output, weight[:1]))
    try:
        yield
    finally:
        hook.remove()


def _bare(model: Any) -> Any:
    """The model without the wrappers of distributed training."""
    while isinstance(getattr(model, "module", None), nn.Module):
        model = model.module
    return model


def projection_of(model: Any) -> Tensor:
    """The (V, C) weight of the decoder's output projection.

    Raises:
        ValueError: there is no such weight, or no way to get the features.
    """
    bare = _bare(model)
    projection: Any = getattr(getattr(bare, "decoder", None), "output_projection", None)
    plain = isinstance(projection, nn.Linear) and projection.bias is None
    if not plain or "features_only" not in inspect.signature(bare.forward).parameters:
        raise ValueError(
            f"{NAME} needs a model with features_only and decoder.output_projection without bias, which "
            f"{type(bare).__name__} has not: use --criterion label_smoothed_cross_entropy"
        )
    return projection.weight
