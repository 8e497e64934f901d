"""HAT, the encoder-decoder of Rohde et al. 2021, section 3, and its baseline without hierarchy.

Section 3.2: token-level encoder layers, and on top a hierarchical encoder over the states of the sentences' BOS tokens.
Its inputs already contain positions, so there are no further position embeddings. The token states stay unchanged.
O(S^2) operations per layer of the hierarchical encoder.

Legend: B documents, T source tokens, T' slots, S sentences, U target tokens, C channels, V vocabulary.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor, nn

from ..modules.attention import FullAttention
from ..modules.batch_layout import Arranged, BatchLayout, arrange_documents
from ..modules.embedding import token_table
from ..modules.layers import EncoderLayer, LayerSizes
from ..modules.options import option
from ..modules.sliding_window import global_tokens
from .config import TokenEncoderConfig
from .encoder import EncoderOut, EncoderParts, Vocabulary, token_states

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


def full_attention(sizes: LayerSizes) -> FullAttention:
    return FullAttention(sizes.embed_dim, sizes.num_heads, sizes.attention_dropout)


def final_norm(sizes: LayerSizes) -> nn.LayerNorm | None:
    """Builds the norm after the last layer of a pre-norm stack."""
    return nn.LayerNorm(sizes.embed_dim, eps=sizes.layer_norm_eps) if sizes.normalize_before else None


def arrangement(config: TokenEncoderConfig, words: Vocabulary) -> Callable[[Tensor], Arranged]:
    """Builds the `arrange` of an encoder whose tokens stay in their order."""
    mark_global = None
    if config.global_tokens is not None:
        mark_global = partial(global_tokens, rule=config.global_tokens, pad=words.pad, eos=words.eos)
    bos = None if config.no_hierarchy else words.bos
    return partial(arrange_documents, pad=words.pad, bos=bos, mark_global=mark_global)


def hat_encoder_parts(
    config: HatConfig, words: Vocabulary, table: nn.Embedding, max_positions: int, roles: int = 0
) -> EncoderParts:
    """Builds the encoder of section 3.2; `roles`: number of roles of speakers, 0 without."""
    sizes = config.sizes()
    parts = EncoderParts(
        words,
        table,
        config.embedding("encoder", max_positions, "--max-source-positions", roles),
        [EncoderLayer(sizes, attention) for attention in config.layer_attentions(config.encoder_layers)],
        arrangement(config, words),
        layer_norm=final_norm(sizes),
        checkpoint=config.checkpoint_activations,
    )
    if config.no_hierarchy:
        return replace(parts, more={"hierarchical_encoder": None})
    layers = [EncoderLayer(sizes, full_attention(sizes)) for _ in range(config.hierarchical_encoder_layers)]
    hierarchical = HierarchicalEncoder(layers, final_norm(sizes))
    return replace(parts, finish=hierarchical.finish, more={"hierarchical_encoder": hierarchical})


def token_tables(config: HatConfig, source: Vocabulary, target: Vocabulary) -> tuple[nn.Embedding, nn.Embedding]:
    """Builds the embeddings of the tokens of encoder and decoder: one table with `config.share_all_embeddings`."""
    table = token_table(source.size, config.encoder_embed_dim, source.pad)
    if config.share_all_embeddings:
        return table, table
    return table, token_table(target.size, config.decoder_embed_dim, target.pad)
