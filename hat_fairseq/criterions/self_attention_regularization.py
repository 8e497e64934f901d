"""The criterion `self_attention_regularization`: two forward passes, and the divergence of their predictions.

Liu et al. 2022 (ERNIE-Sparse), section 3.3. In the second pass the tokens are rolled by `--sar-roll` positions
(`modules.batch_layout.rolled`); 0 is R-Drop (Liang et al. 2021), where the passes differ only in dropout. With P1 and
P2 the distributions that `--base-criterion` is computed from, and L its loss:

    L(P1) + L(P2) + alpha/2 [KL(P1 || P2) + KL(P2 || P1)]

The divergence is summed and normalised like L. Both passes get gradients. Validation is one pass of the base criterion,
so its metrics and the choice of the best checkpoint do not change. Training metrics are those of the first pass, with
`loss` (the formula), `nll_loss` (the mean of L(P1) and L(P2)) and `sar_loss` (the divergence without alpha) in bits.
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor, nn

from ..networks.encoder_with_heads import EncoderWithHeads
from ..options import check_values, option
from .labels import AnswerSpans, DocumentAnswers, DocumentLabels, LabelCriterion

LOGGED = ("nll_loss", "sar_loss")
BASES = (DocumentLabels, AnswerSpans, DocumentAnswers)


@dataclass
class SelfAttentionRegularizationConfig(FairseqDataclass):
    base_criterion: ChoiceEnum([base.name for base in BASES]) = field(  # type: ignore[valid-type]
        default="document_labels", metadata={"help": "compute the loss of each pass with this criterion"}
    )
    sar_alpha: float = option(1.0, "the weight of the divergence between the two passes", least=0)
    sar_roll: int = option(0, "roll the tokens by this many positions in the second pass; 0 is R-Drop", least=0)


@register_criterion("self_attention_regularization", dataclass=SelfAttentionRegularizationConfig)
class SelfAttentionRegularization(FairseqCriterion):
    """Two passes of a base criterion; fairseq reads metrics off the class, so each base has a subclass."""

    base: ClassVar[type[LabelCriterion]]

    def __init__(self, cfg: SelfAttentionRegularizationConfig, task: Any) -> None:
        super().__init__(task)
        check_values(SelfAttentionRegularizationConfig, cfg)
        self.base_criterion = self.base(task)
        self.alpha, self.roll = cfg.sar_alpha, cfg.sar_roll

    @classmethod
    def build_criterion(cls, cfg: SelfAttentionRegularizationConfig, task: Any) -> "SelfAttentionRegularization":
        return REGULARIZED[str(cfg.base_criterion)](cfg, task)

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, Any, dict[str, Any]]:
        """Returns the summed loss, what it is divided by (as the base criterion counts it), and what is logged.

        ValueError for a split without labels, or a model that cannot roll or has full attention.
        """
        if not self.training:
            return self.base_criterion(model, sample, reduce)
        network = model
        while isinstance(inner := getattr(network, "module", None), nn.Module):  # of several processes
            network = inner
        if self.roll and not isinstance(network, EncoderWithHeads):
            raise ValueError(f"--sar-roll {self.roll}: needs an encoder of this package (--arch hat_roberta_base, ...)")
        if self.roll and network.config.encoder_attention == "full":
            raise ValueError(f"--sar-roll {self.roll} changes nothing with --encoder-attention full; give 0 for R-Drop")
        base, target = self.base_criterion, sample["target"]
        rolled = {**sample, "net_input": {**sample["net_input"], "roll": self.roll}} if self.roll else sample
        first, second = base.outputs(model, sample), base.outputs(model, rolled)
        loss, sample_size, log = base.compute(first, target)
        nll = loss + base.compute(second, target)[0]
        divergence = nll.new_zeros(())
        if self.alpha:
            both = (base.distributions(logits, target) for logits in (first, second))
            for (p, weight), (q, _) in zip(*both, strict=True):
                divergence = divergence + weight * symmetric_divergence(p, q)
        total = nll + self.alpha * divergence
        log |= {name: sample[name] for name in ("ntokens", "nsentences")}
        log |= {"loss": total.detach(), "sample_size": sample_size}
        return total, sample_size, log | dict(zip(LOGGED, (nll.detach() / 2, divergence.detach()), strict=True))

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Logs what the base criterion does, and in training the two parts of the loss."""
        cls.base.reduce_metrics(logging_outputs)
        for name in LOGGED if LOGGED[0] in logging_outputs[0] else ():
            total = float(sum(log["sample_size"] for log in logging_outputs))
            value = float(sum(log[name] for log in logging_outputs)) / max(total, 1)
            metrics.log_scalar(name, value / math.log(2), total, round=5)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


REGULARIZED: dict[str, Any] = {
    base.name: type(f"Regularized{base.__name__}", (SelfAttentionRegularization,), {"base": base}) for base in BASES
}


def symmetric_divergence(p: Tensor, q: Tensor) -> Tensor:
    """Computes 1/2 [KL(P || Q) + KL(Q || P)] = 1/2 sum (P - Q) (log P - log Q), summed over rows.

    Args:
        p: (N, K) logits of P; -inf where no probability is.
        q: (N, K) logits of Q, -inf at the same places.
    """
    log_p, log_q = (logits.float().log_softmax(dim=-1) for logits in (p, q))
    difference = (log_p - log_q).masked_fill(p.eq(float("-inf")), 0)  # -inf - (-inf) is NaN
    return ((log_p.exp() - log_q.exp()) * difference).sum() / 2
