"""The task `segment_classification`: a label for each segment of a document, from the state at its `<s>`."""

from dataclasses import dataclass

from fairseq.tasks import register_task

from .config import EncoderTaskConfig
from .encoder_task import EncoderTask
from .row_targets import SegmentTargets


@dataclass
class SegmentClassificationConfig(EncoderTaskConfig):
    """The options of `segment_classification`: those of `EncoderTaskConfig`."""


@register_task("segment_classification", dataclass=SegmentClassificationConfig)
class SegmentClassificationTask(EncoderTask):
    """Targets (B, N), logits (B, N, K) for the N segments of the longest document."""

    kind = "segments"
    head_of = "segment"
    targets_class = SegmentTargets
