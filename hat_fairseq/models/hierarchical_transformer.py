"""`hierarchical_transformer`: the Hierarchical Attention Transformer of Chalkidis et al. 2022.

For fairseq's tasks `masked_lm`, `sentence_prediction` and `sentence_ranking`, with their own criterions. A
classification head takes the place of the masked-LM head, so that every parameter takes part in every step.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderModel, register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.heads import SegmentClassificationHead
from .embedding import initialise_as_bert
from .hat_transformer import set_defaults
from .hierarchical_transformer_config import HierarchicalTransformerConfig
from .hierarchical_transformer_encoder import HierarchicalTransformerEncoder
from .warm_start import adapt_state


@register_model("hierarchical_transformer")
class HierarchicalTransformerModel(FairseqEncoderModel):
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
            classification_head_name: return this head's (B, classes) or, for `each`, (B, N, classes).
            unused: what fairseq's tasks add to `net_input` (ids of samples).
        Returns:
            The head's logits, and the segments' (B, N, C) states and (B, N) padding mask by name.
        """
        encoded = self.encoder(src_tokens)
        extra = {"segments": encoded.segments, "segments_padding": encoded.segments_padding}
        if classification_head_name is not None:
            head = self.classification_heads[classification_head_name]
            return head(encoded.segments, encoded.segments_padding), extra
        if features_only:
            return encoded.tokens, extra
        if self.encoder.lm_head is None:
            raise ValueError("the masked-LM head was replaced by a classification head; say which, or features_only")
        states = encoded.tokens if masked_tokens is None else encoded.tokens[masked_tokens]
        return self.encoder.lm_head(states), extra

    def register_classification_head(
        self, name: str, num_classes: int | None = None, inner_dim: int | None = None, **unused: Any
    ) -> None:
        """fairseq's hook: tasks ask for the head that their criterion names."""
        if num_classes is None:
            raise ValueError(f"classification head {name!r}: the number of classes is missing (--num-classes)")
        config, width = self.config, self.config.encoder_embed_dim
        head = SegmentClassificationHead(
            str(config.pooling),
            width,
            inner_dim or width,
            num_classes,
            dropout=config.pooler_dropout,
            pool_padded=config.pool_padded_segments,
        )
        initialise_as_bert(head)
        self.classification_heads[name] = head.train(self.training)
        self.encoder.lm_head = None

    def get_normalized_probs(
        self, net_output: tuple[Tensor, Any], log_probs: bool, sample: dict[str, Any] | None = None
    ) -> Tensor:
        """(..., classes) probabilities, or their logarithms, in fp32."""
        logits = net_output[0].float()
        return logits.log_softmax(dim=-1) if log_probs else logits.softmax(dim=-1)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """fairseq's hook before loading; what still differs then is an error."""
        adapt_state(state_dict, self.state_dict())


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
