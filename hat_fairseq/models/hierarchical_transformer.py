"""`hierarchical_transformer`: the Hierarchical Attention Transformer of Chalkidis et al. 2022.

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`.
"""

from argparse import Namespace
from typing import Any

from fairseq.models import register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.heads import ClassificationHead, PooledClassificationHead
from .encoder import EncoderOut
from .encoder_model import EncoderModel
from .hat_transformer import set_defaults
from .loading.roberta import start_from_roberta
from .segment_encoder import HierarchicalTransformerConfig, SegmentEncoder


@register_model("hierarchical_transformer")
class HierarchicalTransformerModel(EncoderModel):
    """The state of a document is pooled from its segments."""

    config_class = HierarchicalTransformerConfig

    @classmethod
    def build_encoder(cls, config: HierarchicalTransformerConfig, task: Any) -> nn.Module:
        return SegmentEncoder(config, task.source_dictionary)

    def build_classification_head(self, num_classes: int, inner_dim: int | None, of: str) -> ClassificationHead:
        config, width = self.config, self.config.encoder_embed_dim
        inner_dim, dropout = inner_dim or width, config.pooler_dropout
        if of == "document":
            pool_padded = config.pool_padded_segments
            return PooledClassificationHead(str(config.pooling), width, inner_dim, num_classes, dropout, pool_padded)
        if of == "pair":
            raise ValueError("hierarchical_transformer reads single documents; for pairs use --arch hat_roberta_base")
        return ClassificationHead(width, inner_dim, num_classes, dropout, of=of)

    def document_state(self, head: ClassificationHead, encoded: EncoderOut, src_tokens: Tensor) -> Tensor:
        """(B, C): the pooled states of the segments."""
        assert isinstance(head, PooledClassificationHead)
        assert encoded.spans is not None and encoded.spans_padding is not None
        return head.pooled(encoded.spans, encoded.spans_padding)

    def safe_length(self) -> int:
        by_marker = str(self.config.segment_by) == "marker"
        return self.config.max_segments if by_marker else self.max_positions()

    def fits(self, tokens: Tensor) -> bool:
        return self.encoder.grid(tokens[None]).num_segments <= self.config.max_segments

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        start_from_roberta(state_dict, self)
        super().upgrade_state_dict_named(state_dict, name)


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer")
def base_architecture(args: Namespace) -> None:
    """The defaults of `HierarchicalTransformerConfig`: 12 layers of 768, 32 segments of 128."""


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer_base_4096")
def base_4096(args: Namespace) -> None:
    """RoBERTa-base's sizes, cross-segment layers at every third layer, 32 segments of 128: 153M parameters."""


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer_mini_1024")
def mini_1024(args: Namespace) -> None:
    """BERT-mini's sizes with the interleaved layout of the paper's ablation (I3), 8 segments of 128."""
    set_defaults(args, layout="S|SD|S|SD|S|SD|S|SD", max_segments=8)
    set_defaults(args, encoder_embed_dim=256, encoder_ffn_embed_dim=1024, encoder_attention_heads=4)


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer_tiny")
def tiny(args: Namespace) -> None:
    """4 layers of 64/128, 4 heads, segments of 16: for tests and for trying things out."""
    set_defaults(args, layout="S|SD|S|SD", segment_length=16)
    set_defaults(args, encoder_embed_dim=64, encoder_ffn_embed_dim=128, encoder_attention_heads=4)
