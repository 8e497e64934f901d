"""The task `token_classification`: a label for each word, at its first BPE piece."""

from dataclasses import dataclass

from fairseq.tasks import register_task

from .config import EncoderTaskConfig
from .encoder_task import EncoderTask
from .row_targets import TokenTargets


@dataclass
class TokenClassificationConfig(EncoderTaskConfig):
    """The options of `token_classification`: those of `EncoderTaskConfig`."""


@register_task("token_classification", dataclass=TokenClassificationConfig)
class TokenClassificationTask(EncoderTask):
    """Targets (B, T), logits (B, T, K); markers and further pieces of a word have no label."""

    kind = "tokens"
    head_of = "token"
    targets_class = TokenTargets
