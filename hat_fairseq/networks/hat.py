"""HAT, the encoder-decoder of Rohde et al. 2021, section 3, and its baseline without hierarchy.

Section 3.2: token-level encoder layers, and on top a hierarchical encoder over the states of the sentences' BOS tokens.
Its inputs already contain positions, so there are no further position embeddings. The token states stay unchanged.
O(S^2) operations per layer of the hierarchical encoder. Section 3.3: decoder layers attend to tokens and sentences.

Legend: B documents (in the decoder: hypotheses), T source tokens, T' slots, S sentences, U target tokens, C channels, V
vocabulary.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from ..kernels import Linear
from ..modules.attention import FullAttention
from ..modules.batch_layout import BatchLayout
from ..modules.cache import DecoderCache
from ..modules.embedding import EmbeddingSizes, Embeds, initialise, position_rows, token_table
from ..modules.layers import EncoderLayer, HierarchicalDecoderLayer, LayerSizes, SourceStates, run_layer
from ..options import option, options_of
from .config import NEW_PARTS, Sizes, TokenEncoderConfig, span_pooling
from .encoder import DocumentEncoder, EncoderOut, Vocabulary, build_attentions, token_states

LAYER_NORM: dict[str, Any] = {"rms_norm": False, "norm_bias": True}  # of the decoder, whatever the encoder has
E = TypeVar("E", bound="HatEncoder")
D = TypeVar("D", bound="Decoder")


@dataclass
class HatConfig(TokenEncoderConfig):
    """The encoder-decoder HAT."""

    decoder_embed_dim: int = option(512, "the width of the decoder, which must be that of the encoder", least=1)
    decoder_ffn_embed_dim: int = option(2048, "the width of the feed-forward networks in the decoder", least=1)
    decoder_layers: int = option(6, "the number of decoder layers", least=1)
    decoder_attention_heads: int = option(8, "the number of attention heads in the decoder", least=1)
    decoder_kv_heads: int | None = option(
        None,
        "the number of heads of keys and values in the cross-attention to tokens (default: --decoder-attention-heads)",
        least=1,
    )
    decoder_normalize_before: bool = option(
        False, "put the layer norms of the decoder before its sub-layers (pre-norm), not after them"
    )
    decoder_learned_pos: bool = option(False, "learn the embeddings of target positions instead of computing sinusoids")
    share_all_embeddings: bool = option(
        False, "share one embedding table among source, target and output, which need one joined dictionary"
    )
    share_decoder_input_output_embed: bool = option(
        False, "share one embedding table between the input and the output of the decoder"
    )
    hierarchical_encoder_layers: int = option(
        1,
        "the number of encoder layers over the sentence states (in the paper one works best)",
        least=1,
        excludes="no_hierarchy",
        tolerated=True,
    )
    span_pooling: str = span_pooling("sentence", excludes="no_hierarchy", tolerated=True)
    init: ClassVar[str | None] = None  # how `initialise` is called; None: the modules keep what they draw
    # Parts that may be missing in a checkpoint: the hierarchy, role embeddings, a second level of attention.
    new_parts = ("hierarchical_encoder.", "sentence_attn.", "sentence_attn_layer_norm.", "embed_segments.", *NEW_PARTS)

    def check(self) -> None:
        super().check()
        if self.encoder_embed_dim != self.decoder_embed_dim:
            text = "{encoder_embed_dim} and {decoder_embed_dim} must be equal: the decoder attends to encoder states "
            raise self.error(f"{text}of its own width")
        self.check_shared("decoder", "{decoder_kv_heads}", self.decoder_kv_heads)

    def decoder_sizes(self) -> LayerSizes:
        """Returns the sizes of a decoder layer."""
        return replace(
            self.encoder_sizes(),
            embed_dim=self.decoder_embed_dim,
            ffn_embed_dim=self.decoder_ffn_embed_dim,
            num_heads=self.decoder_attention_heads,
            normalize_before=self.decoder_normalize_before,
            **LAYER_NORM,
            ffn_bias=True,
            kv_heads=self.decoder_kv_heads,
        )

    def decoder_embedding(self, positions: int) -> EmbeddingSizes:
        """Returns the sizes of the embeddings of the target."""
        sizes = self.encoder_embedding(positions, "--max-target-positions")
        return replace(sizes, learned=self.decoder_learned_pos, table=True, token_type=False, **LAYER_NORM)


@dataclass
class HatBartConfig(HatConfig):
    """HAT that begins as BART does."""

    init = "bert"


ENCODER_DECODERS: dict[str, type[HatConfig]] = {"hat_transformer": HatConfig, "hat_bart": HatBartConfig}


class HierarchicalEncoder(nn.Module):
    """Encoder layers over the states of the representatives; `layer_norm`: after the last one, if pre-norm."""

    def __init__(self, layers: Iterable[nn.Module], layer_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.layer_norm = layer_norm

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T', C) outputs of the token-level encoder -> (B, S, C) states of `layout.representatives`."""
        assert layout.representatives is not None
        states = layout.representatives.gather(x)
        for layer in self.layers:
            states = layer(states, layout.among_representatives)
        return states if self.layer_norm is None else self.layer_norm(states)


class HatEncoder(DocumentEncoder):
    """The encoder of section 3.2; `roles`: number of roles of speakers, 0 without."""

    def __init__(
        self, config: HatConfig, vocabulary: Vocabulary, table: nn.Embedding, max_positions: int, roles: int = 0
    ) -> None:
        sizes, top = config.encoder_sizes(), None
        layers = [EncoderLayer(sizes, attention) for attention in build_attentions(config, config.encoder_layers)]
        if not config.no_hierarchy:
            number = config.hierarchical_encoder_layers
            among = [EncoderLayer(sizes, FullAttention(sizes.attention_sizes)) for _ in range(number)]
            top = HierarchicalEncoder(among, sizes.final_norm())
        embedding = config.encoder_embedding(max_positions, "--max-source-positions", roles)
        super().__init__(config, vocabulary, table, embedding, layers)
        self.hierarchical_encoder = top

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """Returns the states of tokens and of sentences."""
        if self.hierarchical_encoder is None:
            return token_states(x, layout)
        assert layout.representatives is not None
        spans, padding = self.hierarchical_encoder(x, layout), layout.representatives.padding
        return replace(token_states(x, layout), spans=spans, spans_padding=padding)


class Decoder(Embeds, nn.Module):
    """Embeddings, decoder layers and the output projection. Targets are padded on the right."""

    def __init__(self, config: HatConfig, table: nn.Embedding, max_positions: int) -> None:
        nn.Module.__init__(self)  # not super(): a class of fairseq, with another constructor, may stand beside this one
        self.build_embedding(table, config.decoder_embedding(max_positions))
        sizes = config.decoder_sizes()
        self.layers = nn.ModuleList(
            HierarchicalDecoderLayer(sizes, sentences=not config.no_hierarchy) for _ in range(config.decoder_layers)
        )
        self.layer_norm = sizes.final_norm()
        self.output_projection = Linear(sizes.embed_dim, table.num_embeddings, bias=False)
        if config.share_all_embeddings or config.share_decoder_input_output_embed:
            self.output_projection.weight = table.weight
        self.checkpoint = config.checkpoint_activations
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialises the output layer as fairseq does, unless it is the table of embeddings."""
        weight = self.output_projection.weight
        if weight is not self.embed_tokens.weight:
            nn.init.normal_(weight, std=weight.size(1) ** -0.5)

    def forward(self, tokens: Tensor, memory: SourceStates, cache: DecoderCache | None = None) -> Tensor:
        """Maps (B, U) target ids, shifted right -> (B, U, V) logits of the token after each; see `states`."""
        return self.logits(self.states(tokens, memory, cache))

    def states(self, tokens: Tensor, memory: SourceStates, cache: DecoderCache | None = None) -> Tensor:
        """Maps (B, U) target ids -> (B, U, C) states.

        Args:
            memory: the encoder's output.
            cache: of the tokens before these, to which these are added; from `new_cache`. None: there are none.
        Raises:
            ValueError: more tokens than positions.
        """
        earlier = 0 if cache is None else cache.length
        rows = position_rows(tokens, self.pad, earlier)
        self.check_positions(rows, earlier)
        x = self.embed(tokens, rows)
        for index, layer in enumerate(self.layers):
            layer_cache = None if cache is None else cache.layers[index]
            x = run_layer(layer, x, memory, cache=layer_cache, checkpoint=self.checkpoint and cache is None)
        return x if self.layer_norm is None else self.layer_norm(x)

    def logits(self, states: Tensor) -> Tensor:
        """Maps (..., C) -> (..., V)."""
        return self.output_projection(states)

    def new_cache(self) -> DecoderCache:
        """Returns an empty cache."""
        return DecoderCache(len(self.layers))


def build_parts(
    encoder_class: type[E],
    decoder_class: type[D],
    config: HatConfig,
    source: Vocabulary,
    target: Vocabulary,
    positions: tuple[int, int],
    roles: int = 0,
) -> tuple[E, D]:
    """Builds encoder and decoder with initial weights.

    Args:
        encoder_class, decoder_class: `HatEncoder` and `Decoder`, or those of fairseq or transformers.
        positions: of source and target.
        roles: number of roles of speakers, 0 without.
    Raises:
        ValueError: less than one position.
    """
    for side, number in zip(("source", "target"), positions, strict=True):
        options_of(Sizes)[f"max_{side}_positions"].check(number)
    table = source_table = token_table(source.size, config.encoder_embed_dim, source.pad)
    if not config.share_all_embeddings:
        table = token_table(target.size, config.decoder_embed_dim, target.pad)
    encoder = encoder_class(config, source, source_table, positions[0], roles)
    decoder = decoder_class(config, table, positions[1])
    if config.init is not None:
        initialise(nn.ModuleList([encoder, decoder]), config.init)
    return encoder, decoder


class EncoderDecoder(nn.Module):
    """HAT: its encoder and its decoder; see `build_parts`."""

    def __init__(
        self, config: HatConfig, source: Vocabulary, target: Vocabulary, positions: tuple[int, int], roles: int = 0
    ) -> None:
        super().__init__()
        self.encoder, self.decoder = build_parts(HatEncoder, Decoder, config, source, target, positions, roles)

    def forward(self, src_tokens: Tensor, tokens: Tensor, roles: Tensor | None = None) -> Tensor:
        """Maps (B, T) source ids and (B, U) target ids, shifted right -> (B, U, V) logits."""
        return self.decoder(tokens, self.encoder(src_tokens, roles))
