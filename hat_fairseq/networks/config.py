"""The configs of every encoder, and the table of its self-attentions: `--encoder-attention NAME` chooses an entry.

A config is data: a field is a flag of fairseq-train and a setting of the transformers model (`options.py`).
Flags that fairseq has keep their names. An entry of `ATTENTIONS` says which flags an attention reads, and builds it. It
works in every model; docs/extend.md#add-an-attention says how to add one.

Legend: B documents, T tokens, K keys, H heads, C channels.
"""

import math
import re
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

from torch import nn

from ..kernels import ACTIVATIONS, GATED
from ..modules.attention import AttentionSizes, FullAttention, Projections, WidthFlags
from ..modules.block_sparse import BlockSparseAttention, SparseFlags
from ..modules.embedding import STRATEGIES, EmbeddingSizes
from ..modules.layers import LayerSizes
from ..modules.pooling_attention import PoolingAttention, PoolingFlags
from ..modules.segments import SegmentAttention, SegmentFlags
from ..modules.sliding_window import SlidingWindowAttention, WindowFlags
from ..options import OptionError, check_effects, no_effect, option, read_options, stated
from .families import FAMILIES, Family, parse_family, renamed, usual_text


class Attention(NamedTuple):
    """An entry of `ATTENTIONS`.

    Attributes:
        flags: the dataclasses of the flags that it reads; they are bases of `EncoderConfig`.
        build: makes the attention of one layer, a module that maps (B, T, C) and a `BatchLayout` -> (B, T, C), of the
            config, the sizes of the attention and the number of the layer.
        other_layers: the attention of the layers outside `--encoder-attention-layers`.
    """

    flags: tuple[type, ...]
    build: "Callable[[EncoderConfig, AttentionSizes, int], nn.Module]"
    other_layers: str = "full"


ATTENTIONS: dict[str, Attention] = {
    "full": Attention(
        (WidthFlags,), lambda config, sizes, _: FullAttention(replace(sizes, inner_dim=config.encoder_qkv_dim))
    ),
    "segments": Attention(
        (SegmentFlags,),
        lambda config, sizes, _: SegmentAttention(
            sizes, **stated(segment_length=config.segment_length, window=config.segment_window)
        ),
    ),
    "window": Attention(
        (WindowFlags,),
        lambda config, sizes, _: SlidingWindowAttention(sizes, **stated(window=config.attention_window)),
    ),
    "pooling": Attention(
        (WindowFlags, PoolingFlags),
        lambda config, sizes, _: PoolingAttention(
            sizes, **stated(window=config.attention_window), level=config.second_level()
        ),
        other_layers="window",
    ),
    "block-sparse": Attention(
        (SparseFlags, WidthFlags),
        lambda config, sizes, layer: BlockSparseAttention(
            replace(sizes, inner_dim=config.encoder_qkv_dim), config.block_pattern(), layer
        ),
    ),
}
# Names of the tensors that full attention does not have. Checkpoints may lack them; then they are initialised.
NEW_PARTS = ("self_attn.pooled.",)


def span_pooling(unit: str, **more: Any) -> Any:
    """Makes the option that says which state represents a span; `unit`: what the spans of this network are."""
    text = f"represent a {unit} by the state of its first token, or by the mean of the states of its tokens"
    return option("marker", text, choices=("marker", "mean"), **more)


def flags_of(attentions: Iterable[Attention]) -> set[str]:
    """Names the flags that these attentions read."""
    return {each.name for attention in attentions for kind in attention.flags for each in fields(kind)}


@dataclass
class Sizes:
    """What a network has beside its settings: sizes of dictionaries, and those that a task decides."""

    vocab_size: int = option(1, "the number of symbols of the dictionary", least=1)
    source_vocab_size: int = option(1, "that of the source, of an encoder-decoder", least=1)
    max_source_positions: int = option(1024, "the maximum number of tokens of a source", least=1)
    max_target_positions: int = option(1024, "the maximum number of tokens of a target", least=1)
    num_roles: int = option(0, "the number of roles of speakers", least=0)


@dataclass
class Head:
    """A classification head in a description."""

    level: str = option("document", "what its states are about, one of `modules.heads.LEVELS`")
    classes: int = option(2, "the number of its classes", least=1)
    inner_dim: int | None = option(None, "the channels of its hidden layer, None for those of the network", least=1)


@dataclass
class EncoderConfig(SparseFlags, PoolingFlags, WindowFlags, SegmentFlags, WidthFlags):
    """What every encoder has. A flag of an attention is None where it is not stated; the last base comes first."""

    encoder_embed_dim: int = option(512, "the width of the encoder", least=1)
    encoder_ffn_embed_dim: int = option(2048, "the width of the feed-forward networks in the encoder", least=1)
    encoder_attention_heads: int = option(8, "the number of attention heads in the encoder", least=1)
    encoder_attention: str = option(
        "full", "the self-attention of the encoder: full, segments, window, pooling or block-sparse"
    )
    encoder_attention_layers: str | None = option(
        None,
        "use --encoder-attention in these layers, e.g. 0,6-8, counted from 0 (default: all); the other layers "
        "have full attention (with pooling: window attention)",
        excludes="encoder_attention=full",
        tolerated=True,  # a recipe's layers meet another attention
    )
    dropout: float = option(0.1, "the dropout of embeddings and sub-layers", least=0, most=1)
    attention_dropout: float = option(0.0, "the dropout of attention weights", least=0, most=1)
    activation_dropout: float = option(0.0, "the dropout inside the feed-forward networks", least=0, most=1)
    activation_fn: str = option(
        "relu", "the activation of the feed-forward networks", choices=sorted(ACTIVATIONS | GATED)
    )
    layer_norm_eps: float = option(1e-5, "the epsilon of layer norms", least=0)
    encoder_family: str = option(
        "plain",
        f"the parts of a published encoder: {', '.join(FAMILIES)}; parts behind the name are others than usual, e.g. "
        "modernbert:rotary=80000",
    )
    own_options: ClassVar[tuple[str, ...]] = ()  # options of attentions that the network itself reads
    new_parts: ClassVar[tuple[str, ...]] = NEW_PARTS  # how tensors begin that a pretrained checkpoint may lack
    copied_parts: ClassVar[dict[str, str]] = {}  # those of them that start from another part of the checkpoint
    checkpoint_activations: bool = option(
        False,
        "recompute each layer in the backward pass, in groups of segments or of tokens where attention is local, "
        "which needs less memory and a third to a half more time",
    )

    @classmethod
    def from_args(cls, args: Namespace) -> Self:
        """Reads the flags of a run; flags that an older checkpoint lacks get their defaults.

        Raises:
            ValueError: a value that a flag cannot have, or flags that contradict each other.
        """
        config = read_options(cls, Namespace(**renamed(vars(args))))
        config.encoder_family = usual_text(config.encoder_family, config.num_layers)
        config.check()
        return config

    def check(self) -> None:
        """Raises ValueError for flags that contradict each other, or that the chosen attention does not read."""
        values, unread = vars(self), flags_of(ATTENTIONS.values()) - flags_of([self.attention()])
        for name in sorted(unread - {*self.own_options}):
            if values[name] is not None:
                raise no_effect(name, "with", f"encoder_attention={self.encoder_attention}", values[name])
        check_effects(type(self), values)  # architectures and folders state defaults, too
        family = self.family
        self.check_shared("encoder", "{encoder_family}: kv_heads", family.kv_heads)
        self.local_layers()
        if family.rotary is not None and self.head_dim % 2:
            text = "{encoder_family}: rotary turns pairs of channels, and a head has"
            raise self.error(f"{text} {self.head_dim}: give fewer heads")
        if family.local_layers is not None and family.rotary_local is None and self.segment_window is None:
            raise self.error("{encoder_family}: local_layers has no effect without rotary_local or {segment_window}")
        if not family.first_norm and not self.normalizes_before:
            raise self.error("{encoder_family} needs {encoder_normalize_before}, where a layer begins with a norm")
        longest = getattr(self, "max_positions", None)
        if longest is not None and self.encoder_attention == "block-sparse":
            self.block_pattern().check_length(longest)

    def check_shared(self, side: str, name: str, shared: int | None) -> None:
        """Raises ValueError if a number of heads of keys, called `name`, does not divide that of queries."""
        heads = getattr(self, f"{side}_attention_heads")
        if shared is not None and heads % shared:
            numbers = ", ".join(str(n) for n in range(1, heads + 1) if heads % n == 0)
            raise self.error(f"{name} does not divide {{{side}_attention_heads}}: give one of {numbers}")

    def error(self, text: str) -> OptionError:
        """Returns the error of options, which a text names as in `{dropout}`, with their values."""
        values = {name: getattr(self, name, None) for name in re.findall(r"{(\w+)}", text)}
        return OptionError(text, **{name: None if isinstance(each, bool) else each for name, each in values.items()})

    @property
    def normalizes_before(self) -> bool:
        """Returns whether the encoder is pre-norm."""
        return bool(getattr(self, "encoder_normalize_before", False))

    @property
    def head_dim(self) -> int:
        """Returns the channels of a head of the encoder."""
        return (self.encoder_qkv_dim or self.encoder_embed_dim) // self.encoder_attention_heads

    @property
    def family(self) -> Family:
        """Returns the record that --encoder-family names."""
        return parse_family(self.encoder_family)

    @property
    def num_layers(self) -> int:
        """Returns the number of layers of the encoder."""
        return getattr(self, "encoder_layers", 0)

    def local_layers(self) -> set[int]:
        """Returns the numbers of the local layers."""
        return self.family.local(self.num_layers)

    def projections(self, layer: int) -> Projections:
        """Returns what the self-attention of a layer has, whatever its pattern."""
        family = self.family
        is_local = family.rotary_local is not None and layer in self.local_layers()
        rotary = family.rotary_local if is_local else family.rotary
        return Projections(family.kv_heads, family.attention_bias, rotary, family.rotary_factor)

    @property
    def norm_sizes(self) -> dict[str, Any]:
        """Returns which norms the layers and the embedding of the encoder have."""
        family = self.family
        return {"layer_norm_eps": self.layer_norm_eps, "rms_norm": family.rms_norm, "norm_bias": family.norm_bias}

    def attention(self) -> Attention:
        """Returns the entry of `ATTENTIONS` that --encoder-attention names; ValueError for another name."""
        if (name := self.encoder_attention) not in ATTENTIONS:
            text = f"{{encoder_attention}} must be one of {', '.join(ATTENTIONS)}, not {{!r:.60}}"
            raise OptionError(text, name, encoder_attention=None)
        return ATTENTIONS[name]

    def encoder_sizes(self) -> LayerSizes:
        """Returns the sizes of an encoder layer."""
        return LayerSizes(
            embed_dim=self.encoder_embed_dim,
            ffn_embed_dim=self.encoder_ffn_embed_dim,
            num_heads=self.encoder_attention_heads,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            activation=self.activation_fn,
            normalize_before=self.normalizes_before,
            **self.norm_sizes,
            ffn_bias=self.family.ffn_bias,
        )


@dataclass
class TokenEncoderConfig(EncoderConfig):
    """An encoder with an optional hierarchy over the sentences."""

    encoder_layers: int = option(6, "the number of encoder layers over the tokens", least=1)
    encoder_normalize_before: bool = option(
        False, "put the layer norms of the encoder before its sub-layers (pre-norm), not after them"
    )
    encoder_learned_pos: bool = option(
        False,
        "learn the embeddings of source positions instead of computing sinusoids",
    )
    layernorm_embedding: bool = option(False, "put a layer norm after the sum of the embeddings")
    no_scale_embedding: bool = option(False, "do not scale token embeddings by sqrt(width)")
    no_hierarchy: bool = option(False, "build the baseline without hierarchy")
    extend_positions: str = option(
        "random",
        "initialise positions beyond those of the pretrained model at random, as copies of these, or as the last one",
        choices=STRATEGIES,
    )
    extend_positions_from: int | None = option(
        None,
        "draw positions from this one on with --extend-positions random (paper: 512; default: the first new one)",
        least=0,
    )

    def check(self) -> None:
        super().check()
        if not self.family.first_norm and not self.layernorm_embedding:
            raise self.error("{encoder_family} needs {layernorm_embedding}, whose norm the first layer reads")

    def encoder_embedding(self, positions: int, flag: str, roles: int = 0) -> EmbeddingSizes:
        """Returns the sizes of the embeddings of the source; `flag` gives the model more positions."""
        return EmbeddingSizes(
            positions,
            learned=self.encoder_learned_pos,
            table=self.family.rotary is None,
            layer_norm=self.layernorm_embedding,
            **self.norm_sizes,
            scale=1.0 if self.no_scale_embedding else math.sqrt(self.encoder_embed_dim),
            dropout=self.dropout,
            roles=roles,
            token_type=self.family.token_type,
            positions_flag=flag,
        )
