"""The Hierarchical Attention Transformer of Chalkidis et al. 2022, section 3.

It divides the tokens of a document into segments before the embedding. Positions count from 0 in each segment. The
outputs are in the order of the input.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import Tensor, nn

from ..modules.attention import FullAttention
from ..modules.batch_layout import Arranged
from ..modules.embedding import EmbeddingSizes, token_table
from ..modules.heads import POOLINGS, ClassificationHead, PooledClassificationHead
from ..modules.options import changed, option
from ..modules.segments import SegmentLayer, arrange_segments, parse_pattern, slots_at_markers, slots_of_length
from .config import EncoderConfig, span_pooling
from .encoder import EncoderOut, EncoderParts, Vocabulary, token_and_span_states


@dataclass
class HierarchicalTransformerConfig(EncoderConfig):
    """An encoder over segments, with a masked-LM head and classification heads.

    The released weights of Chalkidis et al. 2022 need other values of the last four fields; the help texts have them.
    """

    encoder_embed_dim: int = changed(EncoderConfig, "encoder_embed_dim", 768)
    encoder_ffn_embed_dim: int = changed(EncoderConfig, "encoder_ffn_embed_dim", 3072)
    encoder_attention_heads: int = changed(EncoderConfig, "encoder_attention_heads", 12)
    encoder_attention: str = changed(EncoderConfig, "encoder_attention", "segments")
    attention_dropout: float = changed(EncoderConfig, "attention_dropout", 0.1)
    activation_fn: str = changed(EncoderConfig, "activation_fn", "gelu")
    layout: str = option(
        "S|S|SD|S|S|SD|S|S|SD|S|S|SD", "layers with | between them: S within segments, D between segments, SD both"
    )
    segment_length: int = option(128, "maximum number of tokens of a segment", least=1)
    max_segments: int = option(32, "maximum number of segments of a document", least=1)
    segment_by: str = option(
        "length",
        "segments have --segment-length tokens each, or begin at every <s> in the input",
        choices=("length", "marker"),
    )
    pooling: str = option("max", "pooling of the segments for a classification head of documents", choices=POOLINGS)
    pooler_dropout: float = option(0.1, "dropout in front of a head's output layer", least=0, most=1)
    span_pooling: str = span_pooling("segment")
    segment_positions: str = option(
        "add", "positions of segments in cross-segment layers (released weights: none)", choices=("none", "add")
    )
    layer_norm_eps: float = option(1e-5, "epsilon of layer norms (released weights: 1e-12)")
    attend_segment_padding: bool = option(
        False, "padding inside a segment is attended to (released RoBERTa weights: yes)"
    )
    pool_padded_segments: bool = option(
        False, "a head also reads segments beyond the document's end (released weights: yes)"
    )
    like_roberta: ClassVar = False
    init: ClassVar = "bert"
    own_options = ("segment_length",)

    def encoder_parts(self, words: Vocabulary) -> EncoderParts:
        """Builds segment-wise and cross-segment layers; they have one table for the positions of segments."""
        length, longest = self.segment_length, self.max_segments * self.segment_length
        sizes, kinds = self.layer_sizes(), parse_pattern(self.layout)
        has_positions = self.segment_positions == "add" and any("D" in kind for kind in kinds)
        positions = nn.Embedding(1 + self.max_segments, self.encoder_embed_dim) if has_positions else None
        layers = [
            SegmentLayer(
                sizes,
                attention if "S" in kind else None,
                FullAttention(*sizes.attention_sizes) if "D" in kind else None,
                None if positions is None else positions.forward,
            )
            for kind, attention in zip(kinds, self.layer_attentions(len(kinds)), strict=True)
        ]
        by_marker = self.segment_by == "marker"
        divide = partial(slots_at_markers, bos=words.bos) if by_marker else slots_of_length

        def arrange(tokens: Tensor) -> Arranged:
            slots = divide(tokens, pad=words.pad, length=length)
            if has_positions and slots.size > longest:
                raise ValueError(
                    f"a document has {slots.size // length} segments of up to {length} tokens, but --max-segments is "
                    f"{self.max_segments}: raise it, or shorten the input"
                )
            means = self.span_pooling == "mean"
            return arrange_segments(tokens, slots, length, words.pad, self.attend_segment_padding, means)

        return EncoderParts(
            words,
            token_table(words.size, self.encoder_embed_dim, words.pad),
            EmbeddingSizes(length, layer_norm_eps=self.layer_norm_eps, dropout=self.dropout, token_type=True),
            layers,
            arrange,
            token_and_span_states,
            more={"segment_positions": positions},
            max_tokens=longest,
            fits=lambda tokens: divide(tokens[None], pad=words.pad, length=length).size <= longest,
            safe_tokens=self.max_segments if by_marker else 0,
            checkpoint=self.checkpoint_activations,
        )

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> ClassificationHead:
        """Builds a classification head for states of one of `LEVELS`, but not for pairs."""
        width, dropout = self.encoder_embed_dim, self.pooler_dropout
        inner_dim = inner_dim or width
        if level == "document":
            padded = self.pool_padded_segments
            return PooledClassificationHead(self.pooling, width, inner_dim, num_classes, dropout, padded)
        if level == "pair":
            raise ValueError("hierarchical_transformer reads single documents; for pairs use --arch hat_roberta_base")
        return ClassificationHead(width, inner_dim, num_classes, dropout, level=level)

    def document_state(self, head: PooledClassificationHead, encoded: EncoderOut) -> Tensor:
        """Pools the segments of each document to (B, C), by the head."""
        assert encoded.spans is not None and encoded.spans_padding is not None
        return head.pool(encoded.spans, encoded.spans_padding)
