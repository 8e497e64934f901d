"""The numbers of the models, as flags of fairseq-train and as one dataclass a model.

A config is read once, in `build_model`; modules get plain numbers. The flags carry fairseq's names wherever fairseq
has one.
"""

from argparse import Namespace
from dataclasses import dataclass, field, fields
from typing import Any, Optional, Self

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..kernels import ACTIVATIONS
from ..modules.pooling import POOLINGS
from ..modules.positions import STRATEGIES
from ..modules.sentence_attention import QUERIES
from ..modules.transformer_layer import LayerSizes
from .encoder_attention import check_options


def _help(text: str) -> dict[str, str]:
    return {"help": text}


def redefault(base: type, name: str, default: Any) -> Any:
    """The field `name` of the dataclass `base` with another default."""
    return field(default=default, metadata=dict(base.__dataclass_fields__[name].metadata))  # type: ignore[attr-defined]


@dataclass
class EncoderConfig(FairseqDataclass):
    """What every encoder has."""

    encoder_embed_dim: int = field(default=512, metadata=_help("encoder width"))
    encoder_ffn_embed_dim: int = field(default=2048, metadata=_help("encoder feed-forward width"))
    encoder_attention_heads: int = field(default=8, metadata=_help("encoder attention heads"))
    encoder_attention: str = field(
        default="full", metadata=_help("self-attention of the encoder: full, segments, window or pooling")
    )
    encoder_attention_layers: Optional[str] = field(
        default=None,
        metadata=_help(
            "layers with --encoder-attention, as 0,6-8, counted from 0; the others have full attention (with pooling: "
            "window)"
        ),
    )
    segment_length: Optional[int] = field(
        default=None, metadata=_help("longest segment in tokens, of --encoder-attention segments (default: 128)")
    )
    attention_window: Optional[int] = field(
        default=None, metadata=_help("tokens on either side, of --encoder-attention window and pooling (default: 128)")
    )
    pooling_window: Optional[int] = field(
        default=None, metadata=_help("tokens on either side in the second level of pooling (default: 512)")
    )
    pooling_kernel: Optional[int] = field(default=None, metadata=_help("tokens that are pooled (default: 5)"))
    pooling_stride: Optional[int] = field(
        default=None, metadata=_help("tokens from one pooled key to the next (default: 4)")
    )
    key_pooling: Optional[str] = field(
        default=None, metadata=_help(f"pooling of keys and values: {', '.join(POOLINGS)} (default: ldconv)")
    )
    pooling_variant: Optional[str] = field(
        default=None, metadata=_help("second level from the layer's input (mix), or with share-weights")
    )
    dropout: float = field(default=0.1, metadata=_help("dropout of embeddings and sub-layers"))
    attention_dropout: float = field(default=0.0, metadata=_help("dropout of attention weights"))
    activation_dropout: float = field(default=0.0, metadata=_help("dropout inside the feed-forward network"))
    activation_fn: ChoiceEnum(sorted(ACTIVATIONS)) = field(  # type: ignore[valid-type]
        default="relu", metadata=_help("activation of the feed-forward network")
    )
    layer_norm_eps: float = field(default=1e-5, metadata=_help("epsilon of layer norms"))
    checkpoint_activations: bool = field(
        default=False, metadata=_help("recompute each layer in the backward pass: less memory, about a third more time")
    )

    @classmethod
    def from_args(cls, args: Namespace) -> Self:
        """Reads the flags of a run (or of a checkpoint written before a flag existed: its default)."""
        values: dict[str, Any] = {f.name: getattr(args, f.name, f.default) for f in fields(cls)}
        config = cls(**values)
        config.check()
        return config

    def check(self) -> None:
        """Raises ValueError for flags that contradict each other."""

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
            activation=str(self.activation_fn),
            normalize_before=getattr(self, f"{side}_normalize_before", False),
            layer_norm_eps=self.layer_norm_eps,
        )


@dataclass
class TokenEncoderConfig(EncoderConfig):
    """An encoder over tokens in their order, with an optional hierarchy over the sentences."""

    encoder_layers: int = field(default=6, metadata=_help("token-level encoder layers"))
    encoder_normalize_before: bool = field(default=False, metadata=_help("pre-norm encoder"))
    encoder_learned_pos: bool = field(default=False, metadata=_help("learned instead of sinusoidal source positions"))
    layernorm_embedding: bool = field(default=False, metadata=_help("layer norm after the embedding sum"))
    no_scale_embedding: bool = field(default=False, metadata=_help("do not scale token embeddings by sqrt(width)"))
    global_tokens: Optional[str] = field(
        default=None,
        metadata=_help("global tokens, with window and pooling: first, or question (before the first </s>)"),
    )
    no_hierarchy: bool = field(
        default=False, metadata=_help("baseline without hierarchy: the same network without its sentence attention")
    )
    extend_positions: ChoiceEnum(list(STRATEGIES)) = field(  # type: ignore[valid-type]
        default="random", metadata=_help("how a restored model gets positions beyond its pretrained length")
    )
    extend_positions_from: Optional[int] = field(
        default=None,
        metadata=_help(
            "first position to draw anew with --extend-positions random (paper: 512; default: the first missing)"
        ),
    )

    def check(self) -> None:
        check_options(self)


@dataclass
class HatConfig(TokenEncoderConfig):
    """A hierarchical encoder-decoder."""

    decoder_embed_dim: int = field(default=512, metadata=_help("decoder width; equals the encoder's"))
    decoder_ffn_embed_dim: int = field(default=2048, metadata=_help("decoder feed-forward width"))
    decoder_layers: int = field(default=6, metadata=_help("decoder layers"))
    decoder_attention_heads: int = field(default=8, metadata=_help("decoder attention heads"))
    decoder_normalize_before: bool = field(default=False, metadata=_help("pre-norm decoder"))
    decoder_learned_pos: bool = field(default=False, metadata=_help("learned instead of sinusoidal target positions"))
    share_all_embeddings: bool = field(
        default=False, metadata=_help("one table for source, target and output (needs one joined dictionary)")
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata=_help("one table for target input and output")
    )
    hierarchical_encoder_layers: int = field(
        default=1, metadata=_help("encoder layers over the sentence states (the paper found one to work best)")
    )

    def check(self) -> None:
        super().check()
        if self.encoder_embed_dim != self.decoder_embed_dim:
            raise ValueError(
                f"--encoder-embed-dim {self.encoder_embed_dim} and --decoder-embed-dim {self.decoder_embed_dim} must "
                "be equal: the decoder attends to encoder states of its own width"
            )

    def decoder_sizes(self) -> LayerSizes:
        return self._sizes("decoder")


@dataclass
class HatRobertaConfig(TokenEncoderConfig):
    """An encoder with a masked-LM head and classification heads."""

    max_positions: Optional[int] = field(
        default=None, metadata=_help("longest document in tokens (default: --tokens-per-sample, else 512)")
    )
    sentence_queries: ChoiceEnum(list(QUERIES)) = field(  # type: ignore[valid-type]
        default="tokens", metadata=_help("which tokens attend to the sentences: all, or the BOS tokens only")
    )
    pooler_dropout: float = field(default=0.0, metadata=_help("dropout in classification heads"))
    untie_weights_roberta: bool = field(
        default=False, metadata=_help("an output table of its own for the masked-LM head")
    )
