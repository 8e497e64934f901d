"""The numbers of a Hierarchical Attention Transformer, as flags of fairseq-train and as one dataclass.

The last four change what the same weights compute. Their defaults are the ones to train with; what the released weights
of Chalkidis et al. 2022 were trained with is said in each.
"""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..kernels import ACTIVATIONS
from ..modules.segment_attention import parse_layout
from ..modules.segment_pooling import POOLINGS
from ..modules.transformer_layer import LayerSizes
from .config import _help


@dataclass
class HierarchicalTransformerConfig(FairseqDataclass):
    layout: str = field(
        default="S|S|SD|S|S|SD|S|S|SD|S|S|SD",
        metadata=_help("layers with | between them: S within segments, D between segments, SD both"),
    )
    segment_length: int = field(default=128, metadata=_help("longest segment, in tokens, its first one included"))
    max_segments: int = field(default=32, metadata=_help("most segments of a document"))
    segment_by: ChoiceEnum(["length", "marker"]) = field(  # type: ignore[valid-type]
        default="length",
        metadata=_help("segments are the next --segment-length tokens each, or begin at every <s> in the input"),
    )
    encoder_embed_dim: int = field(default=768, metadata=_help("width"))
    encoder_ffn_embed_dim: int = field(default=3072, metadata=_help("feed-forward width"))
    encoder_attention_heads: int = field(default=12, metadata=_help("attention heads"))
    dropout: float = field(default=0.1, metadata=_help("dropout of embeddings and sub-layers"))
    attention_dropout: float = field(default=0.1, metadata=_help("dropout of attention weights"))
    activation_dropout: float = field(default=0.0, metadata=_help("dropout inside the feed-forward network"))
    activation_fn: ChoiceEnum(sorted(ACTIVATIONS)) = field(  # type: ignore[valid-type]
        default="gelu", metadata=_help("activation of the feed-forward network")
    )
    pooling: ChoiceEnum(list(POOLINGS)) = field(  # type: ignore[valid-type]
        default="max", metadata=_help("how a classification head reads the segments")
    )
    pooler_dropout: float = field(default=0.1, metadata=_help("dropout in front of a head's output layer"))
    checkpoint_activations: bool = field(
        default=False, metadata=_help("recompute each layer in the backward pass: less memory, about a third more time")
    )
    segment_positions: ChoiceEnum(["none", "add"]) = field(  # type: ignore[valid-type]
        default="add", metadata=_help("positions of segments in cross-segment layers (released weights: none)")
    )
    layer_norm_eps: float = field(default=1e-5, metadata=_help("epsilon of layer norms (released weights: 1e-12)"))
    attend_segment_padding: bool = field(
        default=False, metadata=_help("padding inside a segment is attended to (released RoBERTa weights: yes)")
    )
    pool_padded_segments: bool = field(
        default=False, metadata=_help("a head also reads segments beyond the document's end (released weights: yes)")
    )

    @classmethod
    def from_args(cls, args: Namespace) -> "HierarchicalTransformerConfig":
        """Reads the flags of a run (or of a checkpoint written before a flag existed: its default)."""
        values: dict[str, Any] = {f.name: getattr(args, f.name, f.default) for f in fields(cls)}
        config = cls(**values)
        config.check()
        return config

    def check(self) -> None:
        for name in ("segment_length", "max_segments"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")

    def layers(self) -> list[str]:
        return parse_layout(self.layout)

    def sizes(self) -> LayerSizes:
        return LayerSizes(
            embed_dim=self.encoder_embed_dim,
            ffn_embed_dim=self.encoder_ffn_embed_dim,
            num_heads=self.encoder_attention_heads,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            activation=str(self.activation_fn),
            layer_norm_eps=self.layer_norm_eps,
        )
