"""The task `multiple_choice`: which of several continuations is right.

Each choice is a row, the text with the question and the choice, and gets one score (Rohde et al. 2021, section 7, on
RACE; Liu et al. 2019). Examples may have different numbers of choices.
"""

from pathlib import Path
from typing import Any

import torch
from fairseq.tasks import register_task
from torch import Tensor

from ..data.ids import read_ids
from ..data.labels import RIGHT
from .config import EncoderTaskConfig
from .encoder_task import EncoderTask
from .row_dataset import ChoiceDataset
from .row_targets import RowTargets


@register_task("multiple_choice", dataclass=EncoderTaskConfig)
class MultipleChoiceTask(EncoderTask):
    """Targets (B,), the number of the right choice; logits (B, K) for the K choices of the example with most."""

    kind = "choice"
    part_to_cut = "first"  # the text; question and choice stay
    classes_are_labels = False

    def build_dataset(
        self, split: str, rows: Any, targets: RowTargets | None, removed: dict[int, slice]
    ) -> ChoiceDataset:
        path = Path(self.cfg.data) / f"{split}.ids"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: it says which rows are the choices of an example")
        right = 0
        if self.label_dictionary is not None:
            right = self.label_dictionary.index(RIGHT) - self.label_dictionary.nspecial
        pad, chunks = self.dictionary.pad(), read_ids(path)
        return ChoiceDataset(rows, targets, removed, pad, chunks=chunks, right=right, what=split)

    def num_scores(self) -> int:
        return 1

    def logits(self, model: Any, sample: dict[str, Any]) -> Tensor:
        """(B, K) scores in fp32, -inf beyond an example's choices."""
        scores, counts = super().logits(model, sample).float().squeeze(-1), sample["choices"]
        exists = torch.arange(int(counts.max()), device=scores.device) < counts[:, None]
        return scores.new_full(exists.shape, float("-inf")).masked_scatter(exists, scores)
