"""The task `masked_document_lm`: fairseq's `masked_lm` for documents with BOS markers.

fairseq also masks 15 % of the markers, and with `<mask>` in place of `<s>` the hierarchy does not find the sentence.
Here markers are neither masked nor predicted; the rate of other tokens does not change. A sample that begins with a
marker does not get another one. A sample is a row of the data, where fairseq's own default joins rows and cuts them
anew (`--sample-break-mode none`). Settings of the data iterators (`fairseq_fixes`) give new masks in every epoch and
exact resumption, and drop no batch.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import BaseWrapperDataset, NestedDictionaryDataset
from fairseq.logging import metrics
from fairseq.logging.meters import safe_round
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import SAMPLE_BREAK_MODE_CHOICES, MaskedLMConfig, MaskedLMTask
from torch import Tensor

from ..data.kinds.pretraining import PretrainingKind
from ..data.manifest import check_files
from .plugin_task import PluginTask, PluginTaskConfig, load_pipeline


@dataclass
class MaskedDocumentLMConfig(PluginTaskConfig, MaskedLMConfig):
    sample_break_mode: SAMPLE_BREAK_MODE_CHOICES = field(
        default="eos",
        metadata={
            "help": "eos: a sample is a row, as preprocessing has filled it; the others join rows and cut them at "
            "--tokens-per-sample (none), between rows (complete), or between documents, too (complete_doc)"
        },
    )


class OneLeadingMarker(BaseWrapperDataset):
    """Removes the marker that fairseq prepends from samples that begin with one.

    `sizes` are exact for the longest samples, so that fairseq does not skip samples that just fit the model. Others may
    be too high by 1.
    """

    def __init__(self, dataset: Any, marker: int) -> None:
        super().__init__(dataset)
        self.marker = marker
        self._sizes = np.array(dataset.sizes)
        for index in np.flatnonzero(self._sizes == self._sizes.max(initial=0)).tolist():
            self._sizes[index] = len(self[index])

    @property
    def sizes(self) -> np.ndarray:
        return self._sizes

    def size(self, index: int) -> int:
        return int(self._sizes[index])

    num_tokens = size

    def __getitem__(self, index: int) -> Tensor:
        item = self.dataset[index]
        return item[1:] if len(item) > 1 and item[1] == self.marker else item


class Unmasked(BaseWrapperDataset):
    """Masked inputs, or their targets, with the markers put back.

    Args:
        dataset: what is returned, inputs or targets.
        targets: of the same samples: the original token where it was masked, padding elsewhere.
        marker: the token that must not be masked.
        replacement: what a masked marker becomes: itself in the inputs, padding in the targets.
    """

    def __init__(self, dataset: Any, targets: Any, marker: int, replacement: int) -> None:
        super().__init__(dataset)
        self.targets, self.marker, self.replacement = targets, marker, replacement

    def __getitem__(self, index: int) -> Tensor:
        return torch.where(self.targets[index] == self.marker, self.replacement, self.dataset[index])


@register_task("masked_document_lm", dataclass=MaskedDocumentLMConfig)
class MaskedDocumentLMTask(PluginTask, MaskedLMTask):
    """Masked LM that neither masks nor predicts sentence markers."""

    cfg: MaskedDocumentLMConfig
    default_criterion = "masked_lm"

    @classmethod
    def setup_task(cls, cfg: MaskedDocumentLMConfig, **kwargs: Any) -> "MaskedDocumentLMTask":
        left, drawn = cfg.leave_unmasked_prob, cfg.random_token_prob
        if not (0 < cfg.mask_prob < 1 and min(left, drawn) >= 0 and left + drawn <= 1):
            raise ValueError(
                f"--mask-prob {cfg.mask_prob} must be between 0 and 1, and the sum of --leave-unmasked-prob {left} and "
                f"--random-token-prob {drawn} at most 1"
            )
        load_pipeline(cfg.data, PretrainingKind.task)  # which refuses data of another kind
        return super().setup_task(cfg, **kwargs)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Logs what the criterion does, and as `bpc` the bits of a masked token from its own state, the mean.

        Longformer's code, which the papers follow, computes its "bits per character" so.
        """
        super().reduce_metrics(logging_outputs, criterion)
        name = "nll_loss" if "nll_loss" in logging_outputs[0] else "loss"
        metrics.log_derived("bpc", lambda meters: safe_round(meters[name].avg, 3))

    def _load_dataset_split(self, split: str, epoch: int, combine: bool) -> OneLeadingMarker:
        folders = utils.split_paths(self.cfg.data)
        check_files(folders[(epoch - 1) % len(folders)], split)
        blocks = super()._load_dataset_split(split, epoch, combine)
        return OneLeadingMarker(blocks, self.source_dictionary.bos())

    def _regular_dataset(self, src_dataset: Any, target_dataset: Any) -> NestedDictionaryDataset:
        bos, pad = self.source_dictionary.bos(), self.source_dictionary.pad()
        targets = target_dataset.dataset  # inside its padding
        inputs = Unmasked(src_dataset, targets, bos, replacement=bos)
        target_dataset.dataset = Unmasked(targets, targets, bos, replacement=pad)
        return super()._regular_dataset(inputs, target_dataset)
