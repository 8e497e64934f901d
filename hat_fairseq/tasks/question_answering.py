"""The task `question_answering`: the answer to a question is a span of a text, or there is none.

As for SQuAD 2.0 (Rajpurkar et al. 2018; Devlin et al. 2019): each token has a score to be the first and one to be the
last of the answer; the row's first token stands for no answer. A row is a window of the text.
"""

from typing import Any

from fairseq.tasks import register_task
from torch import Tensor

from .config import EncoderTaskConfig
from .encoder_task import EncoderTask
from .row_targets import SpanTargets, answer_positions


@register_task("question_answering", dataclass=EncoderTaskConfig)
class QuestionAnsweringTask(EncoderTask):
    """Targets (B, 2), first and last token, 0 0 for none; logits (B, T, 2)."""

    kind = "qa"
    head_of = "token"
    part_to_cut = "last"  # the text; the question stays
    targets_class = SpanTargets
    classes_are_labels = False

    def num_scores(self) -> int:
        return 2

    def logits(self, model: Any, sample: dict[str, Any]) -> Tensor:
        """(B, T, 2) scores in fp32, -inf where no answer may begin or end."""
        possible = answer_positions(sample["net_input"]["src_tokens"], self.dictionary)
        return super().logits(model, sample).float().masked_fill(~possible.unsqueeze(-1), float("-inf"))
