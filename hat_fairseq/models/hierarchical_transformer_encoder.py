"""Encoder of segments (Chalkidis et al. 2022, section 3), as a fairseq encoder.

Legend: B documents, T tokens, N segments of the longest document, L slots of a segment, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from ..modules.heads import MaskedLMHead
from ..modules.segment_attention import HierarchicalLayer
from ..modules.segments import SegmentGrid, segments_at_markers, segments_of_length
from .checkpointing import run_layer
from .fingerprint import fingerprint
from .hierarchical_transformer_config import HierarchicalTransformerConfig


@dataclass(frozen=True)
class EncodedSegments:
    """A batch's states."""

    tokens: Tensor  # (B, T, C), zeros for padding
    segments: Tensor  # (B, N, C)
    segments_padding: Tensor  # (B, N), True = the document has no such segment


class HierarchicalTransformerEncoder(FairseqEncoder):
    """Embeddings, hierarchical layers and the masked-LM head."""

    def __init__(self, config: HierarchicalTransformerConfig, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self.config = config
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        sizes, pad = config.sizes(), dictionary.pad()
        self.embed_tokens = nn.Embedding(len(dictionary), sizes.embed_dim, padding_idx=pad)
        # Rows as RoBERTa's: slot s of a segment is row pad + 1 + s; padding is row 0.
        self.embed_positions = nn.Embedding(pad + 1 + config.segment_length, sizes.embed_dim)
        self.embed_token_type = nn.Embedding(1, sizes.embed_dim)
        self.layernorm_embedding = sizes.layer_norm()
        self.embed_dropout = nn.Dropout(sizes.dropout)
        self.layers = nn.ModuleList(HierarchicalLayer(sizes, kind) for kind in config.layers())
        # One table for all layers: segment n is row 1 + n, a segment of padding row 0.
        between = any("D" in kind for kind in config.layers())
        has_positions = between and str(config.segment_positions) == "add"
        self.segment_positions = nn.Embedding(1 + config.max_segments, sizes.embed_dim) if has_positions else None
        self.lm_head: MaskedLMHead | None = MaskedLMHead(
            sizes.embed_dim, len(dictionary), sizes.activation, self.embed_tokens.weight, sizes.layer_norm_eps
        )

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> EncodedSegments:
        """Encodes (B, T) token ids; `src_lengths` is fairseq's and not needed."""
        grid = self.segment(src_tokens)
        ids = grid.scatter(src_tokens, self.dictionary.pad())
        x = self.encode(ids)
        return EncodedSegments(grid.gather(x), x[:, :, 0], ids.eq(self.dictionary.pad()).all(dim=2))

    def segment(self, tokens: Tensor) -> SegmentGrid:
        """Divides (B, T) token ids.

        Raises:
            ValueError: more segments than there are positions for.
        """
        grid, length = self.grid(tokens), self.config.segment_length
        if self.segment_positions is not None and grid.num_segments > self.config.max_segments:
            raise ValueError(
                f"a document of {grid.num_segments} segments of up to {length} tokens, but --max-segments is "
                f"{self.config.max_segments}: raise it, or shorten the input"
            )
        return grid

    def grid(self, tokens: Tensor) -> SegmentGrid:
        """How (B, T) token ids are divided, however many segments that gives."""
        length, pad = self.config.segment_length, self.dictionary.pad()
        if str(self.config.segment_by) == "marker":
            return segments_at_markers(tokens, self.dictionary.bos(), pad, length)
        return segments_of_length(tokens, pad, length)

    def encode(self, ids: Tensor) -> Tensor:
        """(B, N, L) token ids -> (B, N, L, C) states."""
        padding = ids.eq(self.dictionary.pad())
        absent = padding.all(dim=2)
        x = self.embed_dropout(self.layernorm_embedding(self._embed(ids, padding)))
        mask = absent.unsqueeze(-1).expand_as(padding) if self.config.attend_segment_padding else padding
        layer_mask = mask if bool(mask.any()) else None
        positions = None
        if self.segment_positions is not None:
            rows = torch.arange(1, ids.size(1) + 1, device=ids.device)
            positions = self.segment_positions(rows.masked_fill(absent, 0))
        for layer in self.layers:
            x = run_layer(layer, x, layer_mask, positions, checkpoint=self.config.checkpoint_activations)
        return x

    def _embed(self, ids: Tensor, padding: Tensor) -> Tensor:
        slots = torch.arange(ids.size(2), device=ids.device) + self.dictionary.pad() + 1
        positions = self.embed_positions(slots.masked_fill(padding, 0))
        return self.embed_tokens(ids) + positions + self.embed_token_type.weight[0]

    def max_positions(self) -> int:
        return self.config.segment_length * self.config.max_segments
