"""The task `document_classification`: a label for each document, or for each pair of texts."""

from dataclasses import dataclass

from fairseq.tasks import register_task

from .config import EncoderTaskConfig
from .encoder_task import EncoderTask


@dataclass
class DocumentClassificationConfig(EncoderTaskConfig):
    """The options of `document_classification`: those of `EncoderTaskConfig`."""


@register_task("document_classification", dataclass=DocumentClassificationConfig)
class DocumentClassificationTask(EncoderTask):
    """Targets (B,), logits (B, K)."""

    kind = "classification"
