"""The tasks that give labels: `document_classification`, `segment_classification` and `token_classification`."""

from fairseq.tasks import register_task

from .config import EncoderTaskConfig
from .encoder_task import EncoderTask
from .row_targets import SegmentTargets, TokenTargets


@register_task("document_classification", dataclass=EncoderTaskConfig)
class DocumentClassificationTask(EncoderTask):
    """A label for each document, or for each pair of texts: targets (B,), logits (B, K)."""

    kind = "classification"


@register_task("segment_classification", dataclass=EncoderTaskConfig)
class SegmentClassificationTask(EncoderTask):
    """A label for each of N segments, from the state at its `<s>`: targets (B, N), logits (B, N, K)."""

    kind = "segments"
    head_of = "segment"
    targets_class = SegmentTargets


@register_task("token_classification", dataclass=EncoderTaskConfig)
class TokenClassificationTask(EncoderTask):
    """A label for each word, at its first BPE piece: targets (B, T), logits (B, T, K); other tokens have no label."""

    kind = "tokens"
    head_of = "token"
    targets_class = TokenTargets
