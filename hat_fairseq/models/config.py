"""Hyperparameters of the models: one dataclass for each model, whose fields are flags of fairseq-train.

`build_model` reads the flags into a config once; modules get plain numbers. Flags that fairseq has keep their names.
"""

import re
from argparse import Namespace
from dataclasses import dataclass, field, fields, replace
from typing import Any, Optional, Self

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..kernels import ACTIVATIONS
from ..modules.heads import HEAD_ACTIVATIONS
from ..modules.pooling import POOLINGS
from ..modules.positions import STRATEGIES
from ..modules.sentence_attention import QUERIES
from ..modules.transformer_layer import LayerSizes
from .encoder_attention import check_options

INITIALISATIONS = ("bert", "xavier")  # see `embedding.initialise`


def flag(default: Any, text: str) -> Any:
    """A field that is a flag of fairseq-train, with its help text."""
    return field(default=default, metadata={"help": text})


def redefault(base: type, name: str, default: Any) -> Any:
    """The field `name` of the dataclass `base` with another default."""
    return field(default=default, metadata=dict(base.__dataclass_fields__[name].metadata))  # type: ignore[attr-defined]


@dataclass
class EncoderConfig(FairseqDataclass):
    """Hyperparameters of every encoder."""

    encoder_embed_dim: int = flag(512, "encoder width")
    encoder_ffn_embed_dim: int = flag(2048, "encoder feed-forward width")
    encoder_attention_heads: int = flag(8, "encoder attention heads")
    encoder_attention: str = flag(
        "full", "self-attention of the encoder: full, segments, window, pooling or block-sparse"
    )
    encoder_attention_layers: Optional[str] = flag(
        None,
        "layers that have --encoder-attention, such as 0,6-8, counted from 0; the others have full attention (with "
        "pooling: window)",
    )
    segment_length: Optional[int] = flag(None, "tokens of a segment, of --encoder-attention segments (default: 128)")
    attention_window: Optional[int] = flag(
        None, "tokens on either side, of --encoder-attention window and pooling (default: 128)"
    )
    pooling_window: Optional[int] = flag(None, "tokens on either side in the second level of pooling (default: 512)")
    pooling_kernel: Optional[int] = flag(None, "tokens pooled to one key (default: 5)")
    pooling_stride: Optional[int] = flag(None, "tokens from one pooled key to the next (default: 4)")
    key_pooling: Optional[str] = flag(None, f"pooling of keys and values: {', '.join(POOLINGS)} (default: ldconv)")
    pooling_variant: Optional[str] = flag(
        None, "mix: the second level reads the layer's input; share-weights: it has the first level's projections"
    )
    pooling_cells: Optional[str] = flag(
        None,
        "where pooled keys begin: token, in the token's own window, as in the paper; document, at multiples of "
        "--pooling-stride (default: token)",
    )
    sparse_block: Optional[int] = flag(None, "tokens of a block, of --encoder-attention block-sparse (default: 64)")
    sparse_window: Optional[int] = flag(None, "blocks of the window around each block, itself included (default: 3)")
    sparse_random: Optional[int] = flag(None, "random blocks (default: 3)")
    sparse_first: Optional[int] = flag(None, "global blocks at the beginning of a document (default: 1)")
    sparse_last: Optional[int] = flag(None, "global blocks at the end (default: 1)")
    dropout: float = flag(0.1, "dropout of embeddings and sub-layers")
    attention_dropout: float = flag(0.0, "dropout of attention weights")
    activation_dropout: float = flag(0.0, "dropout inside the feed-forward network")
    activation_fn: ChoiceEnum(sorted(ACTIVATIONS)) = flag(  # type: ignore[valid-type]
        "relu", "activation of the feed-forward network"
    )
    layer_norm_eps: float = flag(1e-5, "epsilon of layer norms")
    encoder_qkv_dim: Optional[int] = flag(
        None, "width of queries, keys and values, with full and block-sparse (default: --encoder-embed-dim)"
    )
    checkpoint_activations: bool = flag(
        False, "recompute each layer in the backward pass: less memory, about a third more time"
    )

    @classmethod
    def from_args(cls, args: Namespace) -> Self:
        """Reads the flags of a run; flags that an older checkpoint lacks get their defaults."""
        values: dict[str, Any] = {f.name: getattr(args, f.name, f.default) for f in fields(cls)}
        config = cls(**values)
        for name, value in values.items():
            flag_name = f"--{name.replace('_', '-')}"
            if re.fullmatch(r"(en|de)coder_(layers|(ffn_)?embed_dim|attention_heads)", name) and value < 1:
                raise ValueError(f"{flag_name} {value}: it must be at least 1")
            if name.endswith("dropout") and not 0 <= value <= 1:
                raise ValueError(f"{flag_name} {value}: it must be from 0 to 1")
        config.check()
        return config

    def check(self) -> None:
        """Raises ValueError for flags that contradict each other."""

    def encoder_sizes(self) -> LayerSizes:
        """The hyperparameters of an encoder layer."""
        return self._sizes("encoder")

    def _sizes(self, side: str) -> LayerSizes:
        return LayerSizes(
            embed_dim=getattr(self, f"{side}_embed_dim"),
            ffn_embed_dim=getattr(self, f"{side}_ffn_embed_dim"),
            num_heads=getattr(self, f"{side}_attention_heads"),
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            activation=str(self.activation_fn),
            normalize_before=getattr(self, f"{side}_normalize_before", False),
            layer_norm_eps=self.layer_norm_eps,
        )


@dataclass
class TokenEncoderConfig(EncoderConfig):
    """An encoder with an optional hierarchy over the sentences."""

    encoder_layers: int = flag(6, "token-level encoder layers")
    encoder_normalize_before: bool = flag(False, "pre-norm encoder")
    encoder_learned_pos: bool = flag(False, "learned instead of sinusoidal source positions")
    layernorm_embedding: bool = flag(False, "layer norm after the embedding sum")
    no_scale_embedding: bool = flag(False, "do not scale token embeddings by sqrt(width)")
    global_tokens: Optional[str] = flag(
        None, "global tokens, with window and pooling: first, or question (before the first </s>)"
    )
    no_hierarchy: bool = flag(False, "build the baseline without hierarchy")
    extend_positions: ChoiceEnum(list(STRATEGIES)) = flag(  # type: ignore[valid-type]
        "random", "initial values of positions beyond those of the pretrained model"
    )
    extend_positions_from: Optional[int] = flag(
        None, "first position that --extend-positions random draws (paper: 512; default: the first new one)"
    )

    def check(self) -> None:
        check_options(self)


@dataclass
class HatConfig(TokenEncoderConfig):
    """Hyperparameters of the encoder-decoder HAT."""

    decoder_embed_dim: int = flag(512, "decoder width; equals the encoder's")
    decoder_ffn_embed_dim: int = flag(2048, "decoder feed-forward width")
    decoder_layers: int = flag(6, "decoder layers")
    decoder_attention_heads: int = flag(8, "decoder attention heads")
    decoder_kv_heads: Optional[int] = flag(
        None, "heads of keys and values in the cross-attention to tokens (default: --decoder-attention-heads)"
    )
    decoder_normalize_before: bool = flag(False, "pre-norm decoder")
    decoder_learned_pos: bool = flag(False, "learned instead of sinusoidal target positions")
    share_all_embeddings: bool = flag(False, "one table for source, target and output (needs one joined dictionary)")
    share_decoder_input_output_embed: bool = flag(False, "one table for target input and output")
    hierarchical_encoder_layers: int = flag(
        1, "encoder layers over the sentence states (the paper found one to work best)"
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
    """Hyperparameters of an encoder with a masked-LM head and classification heads."""

    max_positions: Optional[int] = flag(None, "longest document in tokens (default: --tokens-per-sample, else 512)")
    pooler_dropout: float = flag(0.0, "dropout in classification heads")
    pooler_activation_fn: ChoiceEnum(list(HEAD_ACTIVATIONS)) = flag(  # type: ignore[valid-type]
        "tanh", "activation in classification heads"
    )
    pooler_inner_dim: Optional[int] = flag(
        None, "hidden channels of classification heads (default: the encoder's width)"
    )
    init: ChoiceEnum(list(INITIALISATIONS)) = flag(  # type: ignore[valid-type]
        "bert", "initial weights: bert: N(0, 0.02); xavier: Xavier-uniform, embeddings N(0, 1)"
    )
    untie_weights_roberta: bool = flag(False, "the masked-LM head does not share the token embeddings")


@dataclass
class HatRobertaConfig(RobertaConfig):
    """Hyperparameters of RoBERTa with an attention to sentences."""

    sentence_queries: ChoiceEnum(list(QUERIES)) = flag(  # type: ignore[valid-type]
        "tokens", "which tokens attend to the sentences: all, or the BOS tokens only"
    )
