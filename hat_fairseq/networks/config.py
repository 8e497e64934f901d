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


def parse_layers(text: str | None, num_layers: int, name: str = "encoder_attention_layers") -> set[int]:
    """Parses `0,6-8` to {0, 6, 7, 8}, None to all layers; ValueError for a layer that does not exist."""
    if text is None:
        return set(range(num_layers))
    layers: set[int] = set()
    for part in text.split(","):
        if not re.fullmatch(r"[0-9]+(-[0-9]+)?", part):
            raise OptionError(f"{{{name}}}: write layers as 0,6-8, counted from 0", **{name: text})
        first, last = (int(number) for number in (part if "-" in part else f"{part}-{part}").split("-"))
        if first > last:
            raise OptionError(f"{{{name}}}: {part} ends before it begins; write {last}-{first}", **{name: text})
        layers |= set(range(first, last + 1))
    if not layers or max(layers) >= num_layers:
        raise OptionError(f"{{{name}}}: the encoder has layers 0 to {num_layers - 1}", **{name: text})
    return layers


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
    rotary: float | None = option(
        None, "rotary positions with this base (10000, say) in the encoder's self-attention, and no table", least=1
    )
    rotary_factor: float = option(1.0, "divide rotary positions by this (linear scaling)", least=1, needs="rotary")
    rotary_local: float | None = option(
        None, "another base of rotary positions, for the --local-layers", least=1, needs="rotary and local_layers"
    )
    local_layers: str | None = option(
        None,
        "the layers with --rotary-local, and in segments with --segment-window, e.g. 1-2,4-5, counted from 0",
        needs="rotary_local or segment_window",
    )
    encoder_kv_heads: int | None = option(
        None, "the number of heads of keys and values in the encoder (default: --encoder-attention-heads)", least=1
    )
    rms_norm: bool = option(False, "RMS norms in the layers of the encoder, in place of layer norms")
    no_norm_bias: bool = option(False, "layer norms of the encoder have no bias", excludes="rms_norm")
    no_attention_bias: bool = option(False, "the self-attention of the encoder has no biases")
    no_ffn_bias: bool = option(False, "the feed-forward networks of the encoder have no biases")
    no_first_norm: bool = option(
        False, "pre-norm: the first layer reads the embeddings, which have a norm, without a norm of its own"
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
        config = read_options(cls, args)
        config.check()
        return config

    def check(self) -> None:
        """Raises ValueError for flags that contradict each other, or that the chosen attention does not read."""
        values, unread = vars(self), flags_of(ATTENTIONS.values()) - flags_of([self.attention()])
        for name in sorted(unread - {*self.own_options}):
            if values[name] is not None:
                raise no_effect(name, "with", f"encoder_attention={self.encoder_attention}", values[name])
        check_effects(type(self), values)  # architectures and folders state defaults, too
        self.check_shared("encoder")
        if self.rotary is not None and self.head_dim % 2:
            raise self.error(f"{{rotary}} turns pairs of channels, and a head has {self.head_dim}: give fewer heads")
        if self.no_first_norm and not self.normalizes_before:
            raise self.error("{no_first_norm} needs {encoder_normalize_before}, where a layer begins with a norm")
        longest = getattr(self, "max_positions", None)
        if longest is not None and self.encoder_attention == "block-sparse":
            self.block_pattern().check_length(longest)

    def check_shared(self, side: str) -> None:
        """Raises ValueError for a number of heads of keys and values that does not divide that of queries."""
        heads, shared = (getattr(self, f"{side}_{name}") for name in ("attention_heads", "kv_heads"))
        if shared is not None and heads % shared:
            numbers = ", ".join(str(n) for n in range(1, heads + 1) if heads % n == 0)
            raise self.error(f"{{{side}_kv_heads}} does not divide {{{side}_attention_heads}}: give one of {numbers}")

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

    def projections(self, layer: int, num_layers: int) -> Projections:
        """Returns what the self-attention of a layer has, whatever its pattern."""
        is_local = layer in self.local(num_layers) and self.rotary_local is not None
        rotary = self.rotary_local if is_local else self.rotary
        return Projections(self.encoder_kv_heads, not self.no_attention_bias, rotary, self.rotary_factor)

    def local(self, num_layers: int) -> set[int]:
        """Returns the numbers of the local layers."""
        return set() if self.local_layers is None else parse_layers(self.local_layers, num_layers, "local_layers")

    @property
    def norm_sizes(self) -> dict[str, Any]:
        """Returns which norms the layers and the embedding of the encoder have."""
        return {"layer_norm_eps": self.layer_norm_eps, "rms_norm": self.rms_norm, "norm_bias": not self.no_norm_bias}

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
            ffn_bias=not self.no_ffn_bias,
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
        excludes="rotary",
        tolerated=True,
    )
    layernorm_embedding: bool = option(False, "put a layer norm after the sum of the embeddings")
    token_type: bool = option(False, "add a learned vector to all tokens, as of the first token type of BERT")
    no_scale_embedding: bool = option(False, "do not scale token embeddings by sqrt(width)")
    no_hierarchy: bool = option(False, "build the baseline without hierarchy")
    extend_positions: str = option(
        "random",
        "initialise positions beyond those of the pretrained model at random, as copies of these, or as the last one",
        choices=STRATEGIES,
        excludes="rotary",
        tolerated=True,
    )
    extend_positions_from: int | None = option(
        None,
        "draw positions from this one on with --extend-positions random (paper: 512; default: the first new one)",
        least=0,
        excludes="rotary",
        tolerated=True,
    )

    def check(self) -> None:
        super().check()
        if self.no_first_norm and not self.layernorm_embedding:
            raise self.error("{no_first_norm} needs {layernorm_embedding}, whose norm the first layer reads")

    def encoder_embedding(self, positions: int, flag: str, roles: int = 0) -> EmbeddingSizes:
        """Returns the sizes of the embeddings of the source; `flag` gives the model more positions."""
        return EmbeddingSizes(
            positions,
            learned=self.encoder_learned_pos,
            table=self.rotary is None,
            layer_norm=self.layernorm_embedding,
            **self.norm_sizes,
            scale=1.0 if self.no_scale_embedding else math.sqrt(self.encoder_embed_dim),
            dropout=self.dropout,
            roles=roles,
            token_type=self.token_type,
            positions_flag=flag,
        )
