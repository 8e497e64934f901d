"""The criterion `marker_masked_lm`: masked LM that also predicts each masked token from its sentence's marker alone.

Rohde et al. 2021, section 9: "predicting masked tokens in a sentence given only the representation of the BOS token
corresponding to that sentence". The paper says no more. Here the representation is the state of the marker after the
last layer; the head is that of the masked LM, and it is not told which of the masked tokens to predict. With M the
masked tokens of a batch, and m(t) the marker before token t:

    - sum over t in M of [log p(x_t | state of t) + weight * log p(x_t | state of m(t))]

Metrics, in bits a masked token: `loss` (the formula), `nll_loss` and `marker_loss` (its terms, without the weight).
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.modules import cross_entropy
from torch import Tensor

from ..modules.batch_layout import sentence_starts
from ..options import check_values, option

LOGGED = ("loss", "nll_loss", "marker_loss")


@dataclass
class MarkerMaskedLMConfig(FairseqDataclass):
    marker_weight: float = option(1.0, "the weight of the loss of predictions from the marker", above=0)


@register_criterion("marker_masked_lm", dataclass=MarkerMaskedLMConfig)
class MarkerMaskedLM(FairseqCriterion):
    """Predicts masked tokens from their own states, and from those of their sentences' markers."""

    def __init__(self, cfg: MarkerMaskedLMConfig, task: Any) -> None:
        super().__init__(task)
        if getattr(task, "default_criterion", None) != "masked_lm":  # fairseq's own masked_lm masks markers
            raise ValueError("--criterion marker_masked_lm needs --task masked_document_lm, which masks no markers")
        check_values(MarkerMaskedLMConfig, cfg)
        self.weight, self.words = cfg.marker_weight, task.source_dictionary

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """Returns the summed loss, the number of masked tokens, and what is logged.

        ValueError for a model whose layers do not read the states of the markers.
        """
        config: Any = getattr(model, "config", None)
        tokens = sample["net_input"]["src_tokens"]
        if not hasattr(config, "sentence_queries") or config.no_hierarchy or config.span_pooling != "marker":
            needed = "--arch hat_roberta_*, without --no-hierarchy and --span-pooling mean"
            raise ValueError(f"--criterion marker_masked_lm needs layers that read markers: {needed}")
        masked = sample["target"].ne(self.padding_idx)
        places = torch.arange(tokens.size(1), device=tokens.device)
        markers = places.where(sentence_starts(tokens, self.words.bos(), self.words.pad()), 0).cummax(dim=1).values
        rows, own = masked.nonzero(as_tuple=True)
        read = masked.index_put((rows, markers[masked]), masked.new_tensor(True))  # by one pass of the head
        logits, targets = model(**sample["net_input"], masked_tokens=read)[0], sample["target"][masked]
        number = read.flatten().cumsum(0).view_as(read) - 1  # of a place, among those that are read
        nll, of_markers = (
            cross_entropy(logits[number[rows, columns]], targets, reduction="sum") for columns in (own, markers[masked])
        )
        loss, size = nll + self.weight * of_markers, masked.sum()
        log = dict(zip(LOGGED, (loss.detach(), nll.detach(), of_markers.detach()), strict=True))
        return loss, size, log | {name: sample[name] for name in ("ntokens", "nsentences")} | {"sample_size": size}

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Logs the loss and its terms in bits, and the perplexity of the masked tokens from their own states."""
        size = float(sum(log["sample_size"] for log in logging_outputs))
        for name in LOGGED:
            total = float(sum(log[name] for log in logging_outputs))
            metrics.log_scalar(name, total / max(size, 1) / math.log(2), size, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
