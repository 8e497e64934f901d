"""Token-level encoder with a hierarchical encoder on top (Rohde et al. 2021, section 3.2), as a fairseq encoder.

Legend: B documents, T source tokens, S sentences, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from ..modules.attention import safe_padding_mask
from ..modules.hierarchical_encoder import HierarchicalEncoder
from ..modules.sentences import sentence_starts
from ..modules.transformer_layer import TransformerEncoderLayer
from .checkpointing import run_layer
from .config import HatConfig
from .embedding import EmbedsTokens
from .fingerprint import fingerprint


@dataclass(frozen=True)
class EncoderOut:
    """What the decoder attends to: one row per document, which the hypotheses of the document share."""

    tokens: Tensor  # (B, T, C)
    tokens_padding: Tensor | None  # (B, T), None when nothing is padded
    sentences: Tensor | None  # (B, S, C), None in the plain twin
    sentences_padding: Tensor | None  # (B, S)

    def select(self, documents: Tensor) -> EncoderOut:
        def take(x: Tensor | None) -> Tensor | None:
            return None if x is None else x.index_select(0, documents)

        rest = map(take, (self.tokens_padding, self.sentences, self.sentences_padding))
        return EncoderOut(self.tokens.index_select(0, documents), *rest)


class HatEncoder(EmbedsTokens, FairseqEncoder):
    """Embeddings, token-level layers and, unless `config.no_hierarchy`, the hierarchical encoder."""

    def __init__(
        self,
        config: HatConfig,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        max_positions: int,
        segment_dictionary: Dictionary | None = None,
    ) -> None:
        super().__init__(dictionary)
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        if segment_dictionary is not None:
            self.register_buffer("segment_dictionary_fingerprint", fingerprint(segment_dictionary))
        num_segments = 0 if segment_dictionary is None else len(segment_dictionary)
        self.build_embedding(config, "encoder", embed_tokens, max_positions, num_segments)
        sizes = config.encoder_sizes()

        def final_norm() -> nn.LayerNorm | None:
            return sizes.layer_norm() if sizes.normalize_before else None

        self.layers = nn.ModuleList(TransformerEncoderLayer(sizes) for _ in range(config.encoder_layers))
        self.layer_norm = final_norm()
        self.hierarchical_encoder = None
        if not config.no_hierarchy:
            layers = [TransformerEncoderLayer(sizes) for _ in range(config.hierarchical_encoder_layers)]
            self.hierarchical_encoder = HierarchicalEncoder(layers, final_norm())
        self.checkpoint_activations = config.checkpoint_activations

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, segments: Tensor | None = None
    ) -> EncoderOut:
        """Encodes (B, T) token ids with optional (B, T) segment ids; `src_lengths` is fairseq's and not needed."""
        pad, bos = self.dictionary.pad(), self.dictionary.bos()
        padding, starts = src_tokens.eq(pad), sentence_starts(src_tokens, bos, pad)
        # Both facts at once and before the layers: the device is waited for only here.
        is_padded, num_sentences = torch.stack([padding.any().long(), starts.sum(dim=1).max()]).tolist()
        tokens_padding = safe_padding_mask(padding) if is_padded else None
        x = self.embed(src_tokens, segments=segments)
        for layer in self.layers:
            x = run_layer(layer, x, tokens_padding, checkpoint=self.checkpoint_activations)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        if self.hierarchical_encoder is None:
            return EncoderOut(x, tokens_padding, None, None)
        sentences, sentences_padding = self.hierarchical_encoder(x, starts, num_sentences)
        return EncoderOut(x, tokens_padding, sentences, sentences_padding)

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """For fairseq's own generator: a row for each of its hypotheses."""
        return encoder_out.select(new_order)

    def max_positions(self) -> int:
        return self.embed_positions.max_positions
