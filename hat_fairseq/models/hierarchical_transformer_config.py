"""The numbers of a Hierarchical Attention Transformer, as flags of fairseq-train and as one dataclass.

The last four change what the same weights compute. Their defaults are those to train with; the values that the released
weights of Chalkidis et al. 2022 were trained with are in the help texts.
"""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum

from ..kernels import ACTIVATIONS
from ..modules.segment_attention import parse_layout
from ..modules.segment_pooling import POOLINGS
from .config import EncoderConfig, _help, redefault


def _redefault(name: str, default: Any) -> Any:
    return redefault(EncoderConfig, name, default)


@dataclass
class HierarchicalTransformerConfig(EncoderConfig):
    """An encoder over segments, with a masked-LM head and classification heads."""

    encoder_embed_dim: int = _redefault("encoder_embed_dim", 768)
    encoder_ffn_embed_dim: int = _redefault("encoder_ffn_embed_dim", 3072)
    encoder_attention_heads: int = _redefault("encoder_attention_heads", 12)
    encoder_attention: str = _redefault("encoder_attention", "segments")
    attention_dropout: float = _redefault("attention_dropout", 0.1)
    activation_fn: ChoiceEnum(sorted(ACTIVATIONS)) = _redefault("activation_fn", "gelu")  # type: ignore[valid-type]
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
    pooling: ChoiceEnum(list(POOLINGS)) = field(  # type: ignore[valid-type]
        default="max", metadata=_help("how a classification head reads the segments")
    )
    pooler_dropout: float = field(default=0.1, metadata=_help("dropout in front of a head's output layer"))
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

    def check(self) -> None:
        for name in ("segment_length", "max_segments"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")

    def layers(self) -> list[str]:
        """The kind of each layer, S, D or SD."""
        return parse_layout(self.layout)
