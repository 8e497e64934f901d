"""The criterion `masked_lm_from_sentences`: masked words are also predicted from the BOS state of their sentence.

Proposed as future work by Rohde et al. 2021, section 9; we know of no experiment. The loss is the masked-LM loss plus
`--sentence-weight` times the loss of the second prediction; with the default 0 it is fairseq's `masked_lm`. Both
predictions use the same masked-LM head, so all masked words of a sentence have the same second distribution: the BOS
state learns which words the sentence contains, not their positions.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch.nn.functional as F
from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.criterions.masked_lm import MaskedLmConfig, MaskedLmLoss
from fairseq.logging import metrics
from torch import Tensor


@dataclass
class MaskedLMFromSentencesConfig(MaskedLmConfig):
    sentence_weight: float = field(
        default=0.0, metadata={"help": "weight of predicting masked words from their sentence's BOS state alone"}
    )


@register_criterion("masked_lm_from_sentences", dataclass=MaskedLMFromSentencesConfig)
class MaskedLMFromSentences(MaskedLmLoss):
    """For models whose `forward` takes `from_sentences`."""

    def __init__(self, cfg: MaskedLMFromSentencesConfig, task: Any) -> None:
        super().__init__(cfg, task)
        if cfg.sentence_weight < 0:
            raise ValueError(f"--sentence-weight {cfg.sentence_weight} must not be negative")
        self.sentence_weight = cfg.sentence_weight

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """The loss summed over the masked words, their number, and what is logged."""
        if not self.sentence_weight:
            return super().forward(model, sample, reduce)
        masked = sample["target"].ne(self.padding_idx)
        logits, extra = model(**sample["net_input"], masked_tokens=masked, from_sentences=True)
        targets = sample["target"][masked]
        word_loss, sentence_loss = (
            F.cross_entropy(scores.float(), targets, reduction="sum") for scores in (logits, extra["sentence_logits"])
        )
        loss, sample_size = word_loss + self.sentence_weight * sentence_loss, masked.int().sum()
        logging_output = {
            "loss": loss.detach(),
            "word_loss": word_loss.detach(),
            "sentence_loss": sentence_loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": sample_size,
        }
        return loss, sample_size, logging_output

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Logs all losses in bits a masked word; `ppl` is of the masked LM, with and without the second loss."""
        if "word_loss" not in logging_outputs[0]:
            return MaskedLmLoss.reduce_metrics(logging_outputs)
        sample_size = sum(log["sample_size"] for log in logging_outputs)
        for name in ("loss", "word_loss", "sentence_loss"):
            total = sum(log[name] for log in logging_outputs)
            metrics.log_scalar(name, total / sample_size / math.log(2), sample_size, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["word_loss"].avg))
