"""The Hierarchical Attention Transformer of Chalkidis et al. 2022, section 3.

It divides the tokens of a document into segments before the embedding. Positions count from 0 in each segment. The
outputs are in the order of the input.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..modules.attention import FullAttention
from ..modules.batch_layout import Arranged, BatchLayout, Slots
from ..modules.embedding import EmbeddingSizes, token_table
from ..modules.heads import DOCUMENT_POOLINGS, ClassificationHead, PooledClassificationHead
from ..modules.layers import tokens_of_group
from ..modules.segments import (
    SEGMENT_LENGTH,
    SegmentFlags,
    SegmentLayer,
    arrange_segments,
    parse_pattern,
    reads_segments,
    run_in_groups,
    slots_at_markers,
    slots_of_length,
)
from ..options import changed, option
from .config import EncoderConfig, TokenEncoderConfig, span_pooling
from .encoder import EncoderOut, Vocabulary, build_attentions, token_and_span_states, without_first_norm
from .headed_encoder import HeadedEncoder
from .roberta import RobertaConfig


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
        "S|S|SD|S|S|SD|S|S|SD|S|S|SD",
        "the layers, with | between them: S attends within segments (or as --encoder-attention says), D between "
        "segments, SD is both",
    )
    segment_length: int = changed(
        SegmentFlags, "segment_length", SEGMENT_LENGTH, "the maximum number of tokens of a segment"
    )
    max_segments: int = option(32, "the maximum number of segments of a document", least=1)
    segment_by: str = option(
        "length",
        "divide documents into segments of --segment-length tokens each, or at every <s> in the input",
        choices=("length", "marker"),
    )
    pooling: str = option(
        "max", "pool segments in this way for a classification head of documents", choices=DOCUMENT_POOLINGS
    )
    pooler_dropout: float = option(0.1, "the dropout in front of the output layer of a head", least=0, most=1)
    span_pooling: str = span_pooling("segment")
    segment_positions: str = option(
        "add",
        "add the positions of segments in cross-segment layers, or not (released weights: none)",
        choices=("none", "add"),
    )
    layer_norm_eps: float = changed(
        EncoderConfig, "layer_norm_eps", 1e-5, "the epsilon of layer norms (released weights: 1e-12)"
    )
    attend_segment_padding: bool = option(False, "attend to padding inside a segment (released RoBERTa weights: yes)")
    pool_padded_segments: bool = option(
        False, "let a head also read the empty segments after a document, up to --max-segments (released weights: yes)"
    )
    encoder_normalize_before: bool = changed(TokenEncoderConfig, "encoder_normalize_before", False)
    plain_embedding: bool = option(False, "put no layer norm after the sum of the embeddings")
    untie_weights_roberta: bool = changed(RobertaConfig, "untie_weights_roberta", False)
    init: ClassVar = "bert"
    own_options = ("segment_length",)

    @property
    def num_layers(self) -> int:
        return self.layout.count("|") + 1

    def check(self) -> None:
        super().check()
        if not self.family.first_norm and (self.plain_embedding or not self.layout.startswith("S")):
            text = "{encoder_family} needs a norm of the embedding, without {plain_embedding}, and a first layer S, "
            raise self.error(f"{text}which reads it")
        if self.global_tokens is not None:
            raise self.error("{global_tokens} has no effect: hierarchical_transformer has none; remove it")
        if self.segment_by == "marker" and self.encoder_attention == "block-sparse":
            text = "{segment_by} with {encoder_attention}: its blocks need padding at the end of a document only, and "
            raise self.error(f"{text}each segment ends with padding; divide by length, or take another attention")


class HierarchicalTransformerEncoder(HeadedEncoder):
    """Segment-wise and cross-segment layers, and what the classification heads read.

    All cross-segment layers have one table for the positions of segments.
    """

    config_class = HierarchicalTransformerConfig
    named_as_roberta = False
    reads_first_token = False
    config: HierarchicalTransformerConfig

    def __init__(self, config: HierarchicalTransformerConfig, vocabulary: Vocabulary) -> None:
        sizes, kinds, width = config.encoder_sizes(), parse_pattern(config.layout), config.encoder_embed_dim
        has_positions = config.segment_positions == "add" and any("D" in kind for kind in kinds)
        positions = nn.Embedding(1 + config.max_segments, width) if has_positions else None
        layers = [
            SegmentLayer(
                sizes,
                attention if "S" in kind else None,
                FullAttention(sizes.attention_sizes) if "D" in kind else None,
            )
            for kind, attention in zip(kinds, build_attentions(config, len(kinds)), strict=True)
        ]
        table = token_table(vocabulary.size, width, vocabulary.pad)
        embedding = EmbeddingSizes(
            config.segment_length,
            table=config.family.rotary is None,
            layer_norm=not config.plain_embedding,
            **config.norm_sizes,
            dropout=config.dropout,
            token_type=True,
        )
        if not config.family.first_norm:
            assert layers[0].segment_wise is not None
            without_first_norm([layers[0].segment_wise])
        super().__init__(vocabulary, table, embedding, layers, sizes.final_norm(), config.checkpoint_activations)
        self.config, self.segment_positions = config, positions
        self.max_tokens = config.max_segments * config.segment_length

    def slots(self, tokens: Tensor) -> Slots:
        """Divides (B, T) ids into segments."""
        length, pad = self.config.segment_length, self.vocabulary.pad
        if self.config.segment_by == "marker":
            return slots_at_markers(tokens, self.vocabulary.bos, pad, length)
        return slots_of_length(tokens, pad, length)

    def check_positions(self, rows: Tensor, earlier: int = 0) -> None:
        """Does nothing: positions begin anew in each segment, so no document has too many."""

    def arrange(self, tokens: Tensor) -> Arranged:
        config, slots = self.config, self.slots(tokens)
        length, means = config.segment_length, config.span_pooling == "mean"
        if self.segment_positions is not None and slots.size > self.max_tokens:
            raise ValueError(
                f"a document has {slots.size // length} segments of up to {length} tokens, but --max-segments is "
                f"{config.max_segments}: raise it, or shorten the input"
            )
        if config.pool_padded_segments:
            slots = slots.widened(self._pooled_slots(slots.size))
        return arrange_segments(tokens, slots, length, self.vocabulary.pad, config.attend_segment_padding, means)

    def _pooled_slots(self, size: int) -> int:
        """Returns the slots of --max-segments segments, which are pooled however long the documents of a batch are.

        Without positions of segments the empty ones are all alike, so that one of them stands for all, but in a mean.
        """
        config = self.config
        if self.segment_positions is None and config.pooling in ("first", "last", "max", "min"):
            return min(size + config.segment_length, self.max_tokens)
        return self.max_tokens

    def run_layers(self, x: Tensor, layout: BatchLayout, *arguments: Any) -> Tensor:
        """Runs the layers; with `checkpoint` in groups of segments, if no layer looks beyond its segment."""
        if not (self.checkpoint and torch.is_grad_enabled() and all(map(reads_segments, self.layers))):
            return super().run_layers(x, layout, self.segment_positions)
        length = self.config.segment_length
        group = length * max(1, tokens_of_group(x) // length)
        return run_in_groups(self.layers, x, layout, group, self.segment_positions)  # type: ignore[arg-type]

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """Returns the states of tokens and of segments."""
        return token_and_span_states(x, layout)

    def fits(self, tokens: Tensor) -> bool:
        return self.slots(tokens[None]).size <= self.max_tokens

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        """Builds a classification head for states of one of `LEVELS`, but not for pairs."""
        width, dropout = self.config.encoder_embed_dim, self.config.pooler_dropout
        inner_dim = inner_dim or width
        if level == "document":
            padded = self.config.pool_padded_segments
            return PooledClassificationHead(self.config.pooling, width, inner_dim, num_classes, dropout, padded)
        if level == "pair":
            raise ValueError("hierarchical_transformer reads single documents; for pairs use --arch hat_roberta_base")
        return ClassificationHead(width, inner_dim, num_classes, dropout, level=level)

    def document_state(self, head: PooledClassificationHead, encoded: EncoderOut) -> Tensor:
        """Pools the segments of each document to (B, C), by the head."""
        assert encoded.spans is not None and encoded.spans_padding is not None
        return head.pool(encoded.spans, encoded.spans_padding)
