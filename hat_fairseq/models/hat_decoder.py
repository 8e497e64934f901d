"""`HatDecoder`: its layers attend to tokens and sentences (Rohde et al. 2021, section 3.3).

Legend: B hypotheses, T target tokens, V vocabulary, C channels.
"""

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from ..kernels import Linear
from ..modules.attention import mask_of_keys
from ..modules.cache import DecoderCache
from ..modules.fixed_cache import FixedDecoderCache
from ..modules.hierarchical_decoder_layer import HierarchicalDecoderLayer
from .config import HatConfig
from .embedding import EmbedsTokens
from .encoder import EncoderOut, run_layer
from .fingerprint import fingerprint

_CACHE = "hat_decoder"  # key of the decoder's cache in fairseq's incremental_state


class HatDecoder(EmbedsTokens, FairseqIncrementalDecoder):
    """Embeddings, decoder layers and the output projection. Targets are padded on the right."""

    positions_flag = "--max-target-positions"

    def __init__(
        self,
        config: HatConfig,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        max_positions: int,
    ) -> None:
        super().__init__(dictionary)
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        self.build_embedding(config, "decoder", embed_tokens, max_positions)
        sizes = config.decoder_sizes()
        self.layers = nn.ModuleList(
            HierarchicalDecoderLayer(sizes, sentences=not config.no_hierarchy) for _ in range(config.decoder_layers)
        )
        norm = nn.LayerNorm(sizes.embed_dim, eps=sizes.layer_norm_eps)
        self.layer_norm = norm if sizes.normalize_before else None
        self.output_projection = Linear(sizes.embed_dim, len(dictionary), bias=False)
        if config.share_all_embeddings or config.share_decoder_input_output_embed:
            self.output_projection.weight = self.embed_tokens.weight
        else:
            nn.init.normal_(self.output_projection.weight, std=sizes.embed_dim**-0.5)
        self.checkpoint_activations = config.checkpoint_activations

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        need_weights: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Runs the decoder.

        Args:
            prev_output_tokens: (B, T) target ids, shifted right.
            incremental_state: fairseq's dictionary for the cache; given one, only tokens after the cached ones are run.
            features_only: return (B, T, C) states instead of (B, T, V) logits.
            need_weights: put each layer's `AttentionWeights` under "attention_weights".
        Returns:
            logits or states, and {"attn": [None], ...} as fairseq expects.
        """
        x, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state, need_weights=need_weights)
        return (x if features_only else self.output_layer(x)), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: dict[str, Any] | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        assert encoder_out is not None
        cache = None
        if incremental_state is not None:
            cache = self.cache(incremental_state, len(prev_output_tokens), encoder_out)
        seen = 0 if cache is None else cache.beam_mask.length
        if cache is not None:
            cache.append_slots(prev_output_tokens.size(1) - seen, encoder_out.tokens.dtype)
        return self._run_layers(self.embed(prev_output_tokens, start=seen), encoder_out, cache, need_weights)

    def step(self, tokens: Tensor, position: Tensor, encoder_out: EncoderOut, cache: FixedDecoderCache) -> Tensor:
        """Any decoding step but the first, with fixed shapes and without host-device synchronisation.

        Args:
            tokens: (B, 1) newest ids.
            position: (1, 1) position of these tokens, from 0.
            cache: has a slot for these tokens.
        Returns:
            (B, V) logits of the next tokens.
        """
        x = self.embed_at(tokens, position)
        return self.output_layer(self._run_layers(x, encoder_out, cache)[0][:, -1])

    def _run_layers(
        self, x: Tensor, encoder_out: EncoderOut, cache: DecoderCache | None, need_weights: bool = False
    ) -> tuple[Tensor, dict[str, Any]]:
        # the masks are the same for all layers
        tokens_mask = mask_of_keys(encoder_out.tokens_padding, x.dtype)
        sentences_mask = mask_of_keys(encoder_out.spans_padding, x.dtype)
        attention_weights = []
        for index, layer in enumerate(self.layers):
            x, weights = run_layer(
                layer,
                x,
                encoder_out.tokens,
                tokens_mask,
                encoder_out.spans,
                sentences_mask,
                cache=None if cache is None else cache.layers[index],
                need_weights=need_weights,
                checkpoint=self.checkpoint_activations,
            )
            attention_weights.append(weights)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        extra: dict[str, Any] = {"attn": [None]}
        if need_weights:
            extra["attention_weights"] = attention_weights
        return x, extra

    def output_layer(self, features: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, V)."""
        return self.output_projection(features)

    def cache(
        self,
        incremental_state: dict[str, Any],
        rows: int,
        encoder_out: EncoderOut,
        kind: type[DecoderCache] = DecoderCache,
    ) -> DecoderCache:
        """The cache in `incremental_state`; if there is none, a new one of the given kind for `rows` hypotheses."""
        if _CACHE not in incremental_state:
            memory = encoder_out.tokens
            incremental_state[_CACHE] = kind(rows, memory.size(0), len(self.layers), memory.device)
        return incremental_state[_CACHE]

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """For fairseq's own generator, which has a row for each hypothesis: row i continues row `new_order[i]`."""
        if _CACHE in incremental_state:
            self.reorder_beams(incremental_state, new_order, torch.zeros_like(new_order)[:, None])

    def reorder_beams(self, incremental_state: dict[str, Any], documents: Tensor | None, parents: Tensor) -> None:
        """For `BeamSearchGenerator`, see `BeamCacheMask.reorder`. No host-device synchronisation."""
        incremental_state[_CACHE].reorder(documents, parents)

    def max_positions(self) -> int:
        return self.embed_positions.max_positions
