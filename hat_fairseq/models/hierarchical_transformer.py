"""`hierarchical_transformer`: the Hierarchical Attention Transformer of Chalkidis et al. 2022.

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderModel, register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.heads import ClassificationHead, PooledClassificationHead
from .classification import HasClassificationHeads
from .embedding import initialise_as_bert
from .hat_transformer import set_defaults
from .hierarchical_transformer_config import HierarchicalTransformerConfig
from .hierarchical_transformer_encoder import HierarchicalTransformerEncoder
from .warm_start import adapt_state


@register_model("hierarchical_transformer")
class HierarchicalTransformerModel(HasClassificationHeads, FairseqEncoderModel):
    """The encoder and the heads on it."""

    encoder: HierarchicalTransformerEncoder

    def __init__(self, config: HierarchicalTransformerConfig, encoder: HierarchicalTransformerEncoder) -> None:
        super().__init__(encoder)
        self.config = config
        self.classification_heads = nn.ModuleDict()

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        gen_parser_from_dataclass(parser, HierarchicalTransformerConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> HierarchicalTransformerModel:
        config = HierarchicalTransformerConfig.from_args(args)
        model = cls(config, HierarchicalTransformerEncoder(config, task.source_dictionary))
        initialise_as_bert(model)
        return model

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        features_only: bool = False,
        masked_tokens: Tensor | None = None,
        classification_head_name: str | None = None,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Runs the encoder and one head.

        Args:
            src_tokens: (B, T) token ids of any length.
            features_only: return the (B, T, C) states.
            masked_tokens: (B, T), True where the masked-LM head is wanted; None means everywhere.
            classification_head_name: return this head's logits, (B, K), (B, M, K) for the M markers of the longest
                document, or (B, T, K).
            unused: what fairseq's tasks add to `net_input` (ids of samples).
        Returns:
            The head's logits, and the segments' (B, N, C) states and (B, N) padding mask by name.
        """
        encoded = self.encoder(src_tokens)
        extra = {"segments": encoded.segments, "segments_padding": encoded.segments_padding}
        if classification_head_name is not None:
            head = self.classification_head(classification_head_name)
            if isinstance(head, PooledClassificationHead):
                return head(head.pooled(encoded.segments, encoded.segments_padding)), extra
            return head(self.states_of(head.of, encoded.tokens, src_tokens)), extra
        if features_only:
            return encoded.tokens, extra
        return self.word_logits(encoded.tokens if masked_tokens is None else encoded.tokens[masked_tokens]), extra

    def build_classification_head(self, num_classes: int, inner_dim: int | None, of: str) -> ClassificationHead:
        config, width = self.config, self.config.encoder_embed_dim
        inner_dim, dropout = inner_dim or width, config.pooler_dropout
        if of == "document":
            pool_padded = config.pool_padded_segments
            return PooledClassificationHead(str(config.pooling), width, inner_dim, num_classes, dropout, pool_padded)
        return ClassificationHead(width, inner_dim, num_classes, dropout, of=of)

    def surely_takes(self) -> int:
        by_marker = str(self.config.segment_by) == "marker"
        return self.config.max_segments if by_marker else self.max_positions()

    def takes(self, tokens: Tensor) -> bool:
        return self.encoder.grid(tokens[None]).num_segments <= self.config.max_segments

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """fairseq's hook before loading; what still differs then is an error."""
        adapt_state(state_dict, self)


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer")
def base_architecture(args: Namespace) -> None:
    """The defaults of `HierarchicalTransformerConfig`: 12 layers of 768, 32 segments of 128."""


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer_base_4096")
def base_4096(args: Namespace) -> None:
    """RoBERTa-base's sizes, cross-segment layers at every third layer, 32 segments of 128: 153M parameters."""
    base_architecture(args)


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer_mini_1024")
def mini_1024(args: Namespace) -> None:
    """BERT-mini's sizes with the interleaved layout of the paper's ablation (I3), 8 segments of 128."""
    set_defaults(
        args,
        layout="S|SD|S|SD|S|SD|S|SD",
        max_segments=8,
        encoder_embed_dim=256,
        encoder_ffn_embed_dim=1024,
        encoder_attention_heads=4,
    )
    base_architecture(args)


@register_model_architecture("hierarchical_transformer", "hierarchical_transformer_tiny")
def tiny(args: Namespace) -> None:
    """4 layers of 64/128, 4 heads, segments of 16: for tests and for trying things out."""
    set_defaults(
        args,
        layout="S|SD|S|SD",
        segment_length=16,
        encoder_embed_dim=64,
        encoder_ffn_embed_dim=128,
        encoder_attention_heads=4,
    )
    base_architecture(args)
