"""The decoder of HAT: its layers attend to tokens and sentences (Rohde et al. 2021, section 3.3).

Legend: B hypotheses, U target tokens, V vocabulary, C channels.
"""

from typing import Any

from torch import Tensor, nn

from ..kernels import Linear
from ..modules.attention import mask_of_keys
from ..modules.cache import DecoderCache
from ..modules.embedding import Embeds, position_rows
from ..modules.layers import HierarchicalDecoderLayer
from .encoder import EncoderOut, run_layer
from .hat import HatConfig, final_norm

CACHE = "hat_decoder"  # key of the decoder's cache in fairseq's incremental_state


class Decoder(Embeds, nn.Module):
    """Embeddings, decoder layers and the output projection. Targets are padded on the right."""

    def __init__(self, config: HatConfig, table: nn.Embedding, max_positions: int) -> None:
        super().__init__()
        self.compose(config, table, max_positions)

    def compose(self, config: HatConfig, table: nn.Embedding, max_positions: int) -> None:
        """Builds the decoder; apart from `__init__`, because a fairseq decoder has another constructor."""
        self.build_embedding(table, config.embedding("decoder", max_positions, "--max-target-positions"))
        sizes = config.sizes("decoder")
        self.layers = nn.ModuleList(
            HierarchicalDecoderLayer(sizes, sentences=not config.no_hierarchy) for _ in range(config.decoder_layers)
        )
        self.layer_norm = final_norm(sizes)
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
