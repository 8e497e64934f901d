"""The numbers of the networks: one dataclass for each.

A field is a flag of fairseq-train and a setting of the transformers model (`modules/options.py`). Flags that fairseq
has keep their names.
"""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import dataclass, field, fields, make_dataclass, replace
from typing import Any, Self

from ..kernels import ACTIVATIONS
from ..modules.block_sparse import BlockPattern
from ..modules.heads import HEAD_ACTIVATIONS, POOLINGS
from ..modules.options import changed, check, option, options_of, read
from ..modules.positions import STRATEGIES
from ..modules.representative_tokens import UPDATES, WEIGHTS
from ..modules.segments import parse_layers
from ..modules.transformer_layer import QUERIES, LayerSizes
from .attentions import ATTENTIONS, check_options, entry
from .embedding import EmbeddingSizes

INITIALISATIONS = ("bert", "xavier")  # see `embedding.initialise`
DOCUMENT_POOLINGS = ("mean", "max", "min", "first")


def _attention_flags() -> list[tuple[str, Any, Any]]:
    """The options of all attentions, None where none is given; the help says the default."""
    flags = {}
    for kind in ATTENTIONS.values():
        for name, each, value_type in options_of(kind):
            text = each.metadata["help"]
            if "default" not in text and each.default is not None:
                text = f"{text} (default: {each.default})"
            flags[name] = (name, value_type | None, field(default=None, metadata={**each.metadata, "help": text}))
    return list(flags.values())


AttentionFlags = make_dataclass("AttentionFlags", _attention_flags())


@dataclass
class EncoderConfig(AttentionFlags):  # type: ignore[misc,valid-type]
    """Numbers of every encoder."""

    encoder_embed_dim: int = option(512, "encoder width", least=1)
    encoder_ffn_embed_dim: int = option(2048, "encoder feed-forward width", least=1)
    encoder_attention_heads: int = option(8, "encoder attention heads", least=1)
    encoder_attention: str = option(
        "full", "self-attention of the encoder: full, segments, window, pooling or block-sparse"
    )
    encoder_attention_layers: str | None = option(
        None,
        "layers that have --encoder-attention, such as 0,6-8, counted from 0; the others have full attention (with "
        "pooling: window)",
    )
    dropout: float = option(0.1, "dropout of embeddings and sub-layers", least=0, most=1)
    attention_dropout: float = option(0.0, "dropout of attention weights", least=0, most=1)
    activation_dropout: float = option(0.0, "dropout inside the feed-forward network", least=0, most=1)
    activation_fn: str = option("relu", "activation of the feed-forward network", choices=sorted(ACTIVATIONS))
    layer_norm_eps: float = option(1e-5, "epsilon of layer norms")
    checkpoint_activations: bool = option(
        False, "recompute each layer in the backward pass: less memory, about a third more time"
    )

    @classmethod
    def from_args(cls, args: Namespace) -> Self:
        """Reads the flags of a run; flags that an older checkpoint lacks get their defaults.

        Raises:
            ValueError: a value that a flag cannot have, or flags that contradict each other.
        """
        values: dict[str, Any] = {each.name: getattr(args, each.name, each.default) for each in fields(cls)}
        config = cls(**values)
        for each in fields(cls):
            if (value := getattr(config, each.name)) is not None:
                check(each.name, value, each)
        config.check()
        return config

    def check(self) -> None:
        """Raises ValueError for flags that contradict each other."""
        check_options(self)

    def attention(self, name: str | None = None) -> Any:
        """The entry of `ATTENTIONS` of this name (None: of --encoder-attention) with the options given."""
        return read(entry(name or self.encoder_attention), self)

    def encoder_sizes(self) -> LayerSizes:
        """The numbers of an encoder layer."""
        return self._sizes("encoder")

    def _sizes(self, side: str) -> LayerSizes:
        return LayerSizes(
            embed_dim=getattr(self, f"{side}_embed_dim"),
            ffn_embed_dim=getattr(self, f"{side}_ffn_embed_dim"),
            num_heads=getattr(self, f"{side}_attention_heads"),
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            activation=self.activation_fn,
            normalize_before=getattr(self, f"{side}_normalize_before", False),
            layer_norm_eps=self.layer_norm_eps,
        )


@dataclass
class TokenEncoderConfig(EncoderConfig):
    """An encoder with an optional hierarchy over the sentences."""

    encoder_layers: int = option(6, "token-level encoder layers", least=1)
    encoder_normalize_before: bool = option(False, "pre-norm encoder")
    encoder_learned_pos: bool = option(False, "learned instead of sinusoidal source positions")
    layernorm_embedding: bool = option(False, "layer norm after the embedding sum")
    no_scale_embedding: bool = option(False, "do not scale token embeddings by sqrt(width)")
    no_hierarchy: bool = option(False, "build the baseline without hierarchy")
    extend_positions: str = option(
        "random", "initial values of positions beyond those of the pretrained model", choices=STRATEGIES
    )
    extend_positions_from: int | None = option(
        None, "first position that --extend-positions random draws (paper: 512; default: the first new one)"
    )

    def embedding(self, side: str, positions: int, flag: str, roles: int = 0) -> EmbeddingSizes:
        """The numbers of the embeddings of `side`, encoder or decoder."""
        return EmbeddingSizes(
            positions,
            learned=getattr(self, f"{side}_learned_pos"),
            layer_norm=self.layernorm_embedding,
            layer_norm_eps=self.layer_norm_eps,
            scale=1.0 if self.no_scale_embedding else math.sqrt(getattr(self, f"{side}_embed_dim")),
            dropout=self.dropout,
            roles=roles,
            positions_flag=flag,
        )


@dataclass
class HatConfig(TokenEncoderConfig):
    """The encoder-decoder HAT."""

    decoder_embed_dim: int = option(512, "decoder width; equals the encoder's", least=1)
    decoder_ffn_embed_dim: int = option(2048, "decoder feed-forward width", least=1)
    decoder_layers: int = option(6, "decoder layers", least=1)
    decoder_attention_heads: int = option(8, "decoder attention heads", least=1)
    decoder_kv_heads: int | None = option(
        None, "heads of keys and values in the cross-attention to tokens (default: --decoder-attention-heads)"
    )
    decoder_normalize_before: bool = option(False, "pre-norm decoder")
    decoder_learned_pos: bool = option(False, "learned instead of sinusoidal target positions")
    share_all_embeddings: bool = option(False, "one table for source, target and output (needs one joined dictionary)")
    share_decoder_input_output_embed: bool = option(False, "one table for target input and output")
    hierarchical_encoder_layers: int = option(
        1, "encoder layers over the sentence states (the paper found one to work best)", least=1
    )

    def check(self) -> None:
        super().check()
        if self.encoder_embed_dim != self.decoder_embed_dim:
            raise ValueError(
                f"--encoder-embed-dim {self.encoder_embed_dim} and --decoder-embed-dim {self.decoder_embed_dim} must "
                "be equal: the decoder attends to encoder states of its own width"
            )

        heads, shared = self.decoder_attention_heads, self.decoder_kv_heads
        if shared is not None and (shared < 1 or heads % shared):
            divisors = ", ".join(str(n) for n in range(1, heads + 1) if heads % n == 0)
            raise ValueError(
                f"--decoder-kv-heads {shared} does not divide --decoder-attention-heads {heads}: give one of {divisors}"
            )

    def decoder_sizes(self) -> LayerSizes:
        return replace(self._sizes("decoder"), kv_heads=self.decoder_kv_heads)


@dataclass
class RobertaConfig(TokenEncoderConfig):
    """An encoder with a masked-LM head and classification heads."""

    max_positions: int | None = option(None, "longest document in tokens (default: --tokens-per-sample, else 512)")
    pooler_dropout: float = option(0.0, "dropout in classification heads", least=0, most=1)
    pooler_activation_fn: str = option("tanh", "activation in classification heads", choices=[*HEAD_ACTIVATIONS])
    pooler_inner_dim: int | None = option(
        None, "hidden channels of classification heads (default: the encoder's width)"
    )
    init: str = option(
        "bert", "initial weights: bert: N(0, 0.02); xavier: Xavier-uniform, embeddings N(0, 1)", choices=INITIALISATIONS
    )
    untie_weights_roberta: bool = option(False, "the masked-LM head does not share the token embeddings")


@dataclass
class HatRobertaConfig(RobertaConfig):
    """RoBERTa with an attention to sentences."""

    sentence_queries: str = option(
        "tokens", "which tokens attend to the sentences: all, or the BOS tokens only", choices=QUERIES
    )


@dataclass
class ErnieSparseConfig(RobertaConfig):
    """RoBERTa with representative tokens."""

    encoder_attention: str = changed(EncoderConfig, "encoder_attention", "block-sparse")
    representative_weights: str = option(
        "shared",
        "projections of the attention among representatives: shared with the layer's attention, or separate",
        choices=WEIGHTS,
    )
    representative_update: str = option(
        "replace",
        "the output of this attention replaces the states (equation 3), or is added with a layer norm",
        choices=UPDATES,
    )
    representative_positions: str = option(
        "block",
        "position of a representative: that of its block's first token, or its own in the sequence",
        choices=("block", "sequence"),
    )
    document_pooling: str = option(
        "mean",
        "state that a classification head reads: pooled representatives, or that of the first token",
        choices=DOCUMENT_POOLINGS,
    )

    def attention(self, name: str | None = None) -> Any:
        attention = super().attention(name)
        if self.no_hierarchy or (name or self.encoder_attention) != "block-sparse":
            return attention
        return replace(attention, pattern=replace(attention.pattern, whole_document=True))

    def check(self) -> None:
        if self.no_hierarchy:
            for name in ("representative_update", "representative_positions", "document_pooling"):
                if (value := getattr(self, name)) != self.__dataclass_fields__[name].default:
                    raise ValueError(f"--{name.replace('_', '-')} {value} has no effect with --no-hierarchy; remove it")
            return super().check()
        if self.encoder_attention != "block-sparse":
            raise ValueError("representative tokens need --encoder-attention block-sparse; or give --no-hierarchy")
        pattern: BlockPattern = self.attention().pattern
        if pattern.block == 1:
            raise ValueError("--sparse-block 1 has room for a representative only: give at least 2, or --no-hierarchy")
        if self.max_positions is not None and pattern.first * pattern.block >= self.max_positions:
            raise ValueError(
                f"--sparse-first {pattern.first} blocks of {pattern.block} tokens leave none of --max-positions "
                f"{self.max_positions} for representatives: give fewer or smaller blocks, or --no-hierarchy"
            )
        return super().check()


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

    def check(self) -> None:
        check_options(self, besides=("segment_length",))

    def layers(self) -> list[str]:
        """The kind of each layer, S, D or SD."""
        return parse_layers(self.layout)
