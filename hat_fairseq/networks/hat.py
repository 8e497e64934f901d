"""HAT, the encoder-decoder of Rohde et al. 2021, section 3, and its baseline without hierarchy.

Section 3.2: token-level encoder layers, and on top a hierarchical encoder over the states of the sentences' BOS tokens.
Its inputs already contain positions, so there are no further position embeddings. The token states stay unchanged.
O(S^2) operations per layer of the hierarchical encoder. Section 3.3: decoder layers attend to tokens and sentences.

Legend: B documents (in the decoder: hypotheses), T source tokens, T' slots, S sentences, U target tokens, C channels, V
vocabulary.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from ..kernels import Linear
from ..modules.attention import FullAttention, mask_of_keys
from ..modules.batch_layout import Arranged, BatchLayout, arrange_documents
from ..modules.cache import DecoderCache
from ..modules.embedding import Embeds, position_rows, token_table
from ..modules.layers import EncoderLayer, HierarchicalDecoderLayer
from ..modules.options import option
from ..modules.sliding_window import global_tokens
from .config import NEW_PARTS, TokenEncoderConfig, span_pooling
from .encoder import Encoder, EncoderOut, EncoderParts, Vocabulary, run_layer, token_states

CACHE = "hat_decoder"  # key of the decoder's cache in fairseq's incremental_state
LIKE_BERT = ("hat_bart",)  # networks whose weights begin with `embedding.initialise`; others keep what modules draw


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
    span_pooling: str = span_pooling("sentence")
    # Parts that may be missing in a checkpoint: the hierarchy, role embeddings, a second level of attention.
    new_parts = ("hierarchical_encoder.", "sentence_attn.", "sentence_attn_layer_norm.", "embed_segments.", *NEW_PARTS)

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


ENCODER_DECODERS = {"hat_transformer": HatConfig, "hat_bart": HatConfig}


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

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """Returns the states of tokens and of sentences."""
        assert layout.representatives is not None
        return replace(token_states(x, layout), spans=self(x, layout), spans_padding=layout.representatives.padding)


def arrangement(config: TokenEncoderConfig, words: Vocabulary) -> Callable[[Tensor], Arranged]:
    """Builds the `arrange` of an encoder whose tokens stay in their order."""
    mark_global = None
    if config.global_tokens is not None:
        mark_global = partial(global_tokens, rule=config.global_tokens, pad=words.pad, eos=words.eos)
    bos = None if config.no_hierarchy else words.bos
    means = bos is not None and getattr(config, "span_pooling", "marker") == "mean"
    return partial(arrange_documents, pad=words.pad, bos=bos, mark_global=mark_global, means=means)


def hat_encoder_parts(
    config: HatConfig, words: Vocabulary, table: nn.Embedding, max_positions: int, roles: int = 0
) -> EncoderParts:
    """Builds the encoder of section 3.2; `roles`: number of roles of speakers, 0 without."""
    sizes = config.layer_sizes()
    parts = EncoderParts(
        words,
        table,
        config.embedding_sizes("encoder", max_positions, "--max-source-positions", roles),
        [EncoderLayer(sizes, attention) for attention in config.layer_attentions(config.encoder_layers)],
        arrangement(config, words),
        layer_norm=sizes.final_norm(),
        checkpoint=config.checkpoint_activations,
    )
    if config.no_hierarchy:
        return replace(parts, more={"hierarchical_encoder": None})
    number = config.hierarchical_encoder_layers
    layers = [EncoderLayer(sizes, FullAttention(*sizes.attention_sizes)) for _ in range(number)]
    hierarchical = HierarchicalEncoder(layers, sizes.final_norm())
    return replace(parts, finish=hierarchical.finish, more={"hierarchical_encoder": hierarchical})


def token_tables(config: HatConfig, source: Vocabulary, target: Vocabulary) -> tuple[nn.Embedding, nn.Embedding]:
    """Builds the embeddings of the tokens of encoder and decoder: one table with `config.share_all_embeddings`."""
    table = token_table(source.size, config.encoder_embed_dim, source.pad)
    if config.share_all_embeddings:
        return table, table
    return table, token_table(target.size, config.decoder_embed_dim, target.pad)


class Decoder(Embeds, nn.Module):
    """Embeddings, decoder layers and the output projection. Targets are padded on the right."""

    def __init__(self, config: HatConfig, table: nn.Embedding, max_positions: int) -> None:
        super().__init__()
        self.compose(config, table, max_positions)

    def compose(self, config: HatConfig, table: nn.Embedding, max_positions: int) -> None:
        """Builds the decoder; apart from `__init__`, because a fairseq decoder has another constructor."""
        self.build_embedding(table, config.embedding_sizes("decoder", max_positions, "--max-target-positions"))
        sizes = config.layer_sizes("decoder")
        self.layers = nn.ModuleList(
            HierarchicalDecoderLayer(sizes, sentences=not config.no_hierarchy) for _ in range(config.decoder_layers)
        )
        self.layer_norm = sizes.final_norm()
        self.output_projection = Linear(sizes.embed_dim, table.num_embeddings, bias=False)
        if config.share_all_embeddings or config.share_decoder_input_output_embed:
            self.output_projection.weight = table.weight
        else:
            nn.init.normal_(self.output_projection.weight, std=sizes.embed_dim**-0.5)
        self.checkpoint = config.checkpoint_activations

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Maps (B, U) target ids, shifted right -> (B, U, V) logits, or (B, U, C) states; see `extract_features`.

        Beside states a row of the output projection is returned, because DDP searches the outputs for unused
        parameters.
        """
        x, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        if features_only:
            return x, extra | {"projection": self.output_projection.weight[:1]}
        return self.output_layer(x), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: dict[str, Any] | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Maps (B, U) target ids -> (B, U, C) states, or those of the tokens after the cached ones.

        Args:
            incremental_state: fairseq's dictionary for the cache; None: no token is cached.
        Returns:
            The states, and {"attn": [None]} as fairseq expects.
        """
        assert encoder_out is not None
        rows = position_rows(prev_output_tokens, self.pad)
        self.check_positions(rows)
        cache: DecoderCache | None = None
        if incremental_state is not None:
            cache = incremental_state.setdefault(CACHE, DecoderCache(len(self.layers)))
        seen = 0 if cache is None else cache.length
        x = self.embed(prev_output_tokens[:, seen:], rows[:, seen:])
        tokens_mask, sentences_mask = (
            mask_of_keys(padding, x.dtype) for padding in (encoder_out.tokens_padding, encoder_out.spans_padding)
        )
        memory = encoder_out.tokens, tokens_mask, encoder_out.spans, sentences_mask  # the same for all layers
        for index, layer in enumerate(self.layers):
            layer_cache = None if cache is None else cache.layers[index]
            x = run_layer(layer, x, *memory, cache=layer_cache, checkpoint=self.checkpoint)
        return (x if self.layer_norm is None else self.layer_norm(x)), {"attn": [None]}

    def output_layer(self, features: Tensor) -> Tensor:
        """Maps (B, U, C) -> (B, U, V)."""
        return self.output_projection(features)

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Lets row i continue row `new_order[i]`; fairseq's own generator has a row for each hypothesis."""
        if CACHE in incremental_state:
            self.reorder_beams(incremental_state, new_order, new_order)

    def reorder_beams(self, incremental_state: dict[str, Any], rows: Tensor, documents: Tensor | None) -> None:
        """Reorders for our beam search, whose hypotheses share their document's memory; see `DecoderCache.reorder`."""
        incremental_state[CACHE].reorder(rows, documents)


class EncoderDecoder(nn.Module):
    """HAT: its encoder and its decoder."""

    def __init__(self, numbers: Any, source: Vocabulary, target: Vocabulary, positions: tuple[int, int], roles: int):
        super().__init__()
        tables = token_tables(numbers, source, target)
        self.encoder = Encoder(hat_encoder_parts(numbers, source, tables[0], positions[0], roles))
        self.decoder = Decoder(numbers, tables[1], positions[1])
