"""The encoder of `hierarchical_transformer` and its hyperparameters (Chalkidis et al. 2022, section 3).

It divides the tokens of a document into segments before the embedding. Positions count from 0 in each segment. The
outputs are in the order of the input.

Legend: B documents, T tokens, N segments of the longest document, L slots of a segment, C channels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from torch import Tensor, nn

from ..kernels import ACTIVATIONS
from ..modules.batch_layout import BatchLayout
from ..modules.heads import MaskedLMHead
from ..modules.representatives import Representatives
from ..modules.segment_attention import SegmentLayer, parse_layout
from ..modules.segment_pooling import POOLINGS
from ..modules.segments import SegmentGrid, segments_at_markers, segments_of_length
from .config import EncoderConfig, flag, redefault
from .encoder import Encoder, EncoderOut
from .encoder_attention import check_options, layer_attentions
from .fingerprint import fingerprint
from .shown import ShownAttention


@dataclass
class HierarchicalTransformerConfig(EncoderConfig):
    """Hyperparameters of an encoder over segments, with a masked-LM head and classification heads.

    The released weights of Chalkidis et al. 2022 need other values of the last four fields; the help texts have them.
    """

    encoder_embed_dim: int = redefault(EncoderConfig, "encoder_embed_dim", 768)
    encoder_ffn_embed_dim: int = redefault(EncoderConfig, "encoder_ffn_embed_dim", 3072)
    encoder_attention_heads: int = redefault(EncoderConfig, "encoder_attention_heads", 12)
    encoder_attention: str = redefault(EncoderConfig, "encoder_attention", "segments")
    attention_dropout: float = redefault(EncoderConfig, "attention_dropout", 0.1)
    activation_fn: ChoiceEnum(sorted(ACTIVATIONS)) = redefault(EncoderConfig, "activation_fn", "gelu")  # type: ignore[valid-type]
    layout: str = flag(
        "S|S|SD|S|S|SD|S|S|SD|S|S|SD", "layers with | between them: S within segments, D between segments, SD both"
    )
    segment_length: int = flag(128, "maximum number of tokens of a segment")
    max_segments: int = flag(32, "maximum number of segments of a document")
    segment_by: ChoiceEnum(["length", "marker"]) = flag(  # type: ignore[valid-type]
        "length", "segments have --segment-length tokens each, or begin at every <s> in the input"
    )
    pooling: ChoiceEnum(list(POOLINGS)) = flag(  # type: ignore[valid-type]
        "max", "pooling of the segments for a classification head of documents"
    )
    pooler_dropout: float = flag(0.1, "dropout in front of a head's output layer")
    segment_positions: ChoiceEnum(["none", "add"]) = flag(  # type: ignore[valid-type]
        "add", "positions of segments in cross-segment layers (released weights: none)"
    )
    layer_norm_eps: float = flag(1e-5, "epsilon of layer norms (released weights: 1e-12)")
    attend_segment_padding: bool = flag(
        False, "padding inside a segment is attended to (released RoBERTa weights: yes)"
    )
    pool_padded_segments: bool = flag(
        False, "a head also reads segments beyond the document's end (released weights: yes)"
    )

    def check(self) -> None:
        for name in ("segment_length", "max_segments"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} {getattr(self, name)}: at least 1")
        check_options(self, besides=("segment_length",))

    def layers(self) -> list[str]:
        """The kind of each layer, S, D or SD."""
        return parse_layout(self.layout)


class SegmentEncoder(Encoder):
    """Embeddings, segment-wise and cross-segment layers, and the masked-LM head."""

    def __init__(self, config: HierarchicalTransformerConfig, dictionary: Dictionary) -> None:
        table = nn.Embedding(len(dictionary), config.encoder_embed_dim, padding_idx=dictionary.pad())
        super().__init__(config, dictionary, table, config.segment_length)
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        sizes = config.encoder_sizes()
        # One table for all layers: segment n is row 1 + n, a segment of padding row 0.
        between = any("D" in kind for kind in config.layers())
        has_positions = between and str(config.segment_positions) == "add"
        self.segment_positions = nn.Embedding(1 + config.max_segments, sizes.embed_dim) if has_positions else None
        self.lm_head: MaskedLMHead | None = MaskedLMHead(
            sizes.embed_dim, len(dictionary), sizes.activation, self.embed_tokens.weight, sizes.layer_norm_eps
        )

    def build_embedding(  # type: ignore[override]
        self,
        config: HierarchicalTransformerConfig,
        side: str,
        embed_tokens: nn.Embedding,
        max_positions: int,
        num_roles: int = 0,
    ) -> None:
        width, pad = embed_tokens.embedding_dim, embed_tokens.padding_idx
        assert pad is not None
        self.embed_tokens = embed_tokens
        # Rows as RoBERTa's: slot s of a segment is row pad + 1 + s; padding is row 0.
        self.embed_positions = nn.Embedding(pad + 1 + max_positions, width)  # type: ignore[assignment]
        self.embed_token_type = nn.Embedding(1, width)
        self.layernorm_embedding = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.embed_dropout = nn.Dropout(config.dropout)

    def build_layers(self) -> Iterator[nn.Module]:
        sizes, kinds = self.config.encoder_sizes(), self.config.layers()
        for kind, self_attn in zip(kinds, layer_attentions(self.config, len(kinds)), strict=True):
            yield SegmentLayer(sizes, kind, self_attn)

    def arrange(self, src_tokens: Tensor) -> tuple[Tensor, BatchLayout]:
        """(B, T) token ids -> (B, N L) token ids in the slots of segments, and the layout of the batch.

        Raises:
            ValueError: more segments than there are positions for.
        """
        grid, pad = self.grid(src_tokens), self.dictionary.pad()
        if self.segment_positions is not None and grid.num_segments > self.config.max_segments:
            raise ValueError(
                f"a document has {grid.num_segments} segments of up to {grid.segment_length} tokens, but "
                f"--max-segments is {self.config.max_segments}: raise it, or shorten the input"
            )
        ids = grid.scatter(src_tokens, pad)
        padding = ids.eq(pad)
        empty = padding.all(dim=2)
        masked = grid.has_padding
        if self.config.attend_segment_padding:
            padding, masked = empty.unsqueeze(-1).expand_as(padding), grid.has_empty
        layout = BatchLayout(
            padding=padding.flatten(1) if masked else None,
            representatives=self._first_slots(grid, empty),
            blocks=grid,
            empty_rows=grid.has_empty,
        )
        return ids.flatten(1), layout

    def _first_slots(self, grid: SegmentGrid, empty: Tensor) -> Representatives:
        """The first slots of segments; `empty`: (B, N) True = a segment without tokens."""
        numbers = torch.arange(grid.num_segments, device=empty.device)
        embedding = None
        if self.segment_positions is not None:
            embedding = self.segment_positions((numbers + 1).masked_fill(empty, 0))
        positions = (numbers * grid.segment_length).expand_as(empty)
        return Representatives(positions, empty if grid.has_empty else None, embedding=embedding)

    def grid(self, tokens: Tensor) -> SegmentGrid:
        """The division of (B, T) token ids into segments, of which there may be too many."""
        length, pad = self.config.segment_length, self.dictionary.pad()
        if str(self.config.segment_by) == "marker":
            return segments_at_markers(tokens, self.dictionary.bos(), pad, length)
        return segments_of_length(tokens, pad, length)

    def units(self, tokens: Tensor) -> tuple[str, Tensor]:
        grid = self.grid(tokens)
        numbers = grid.slots.div(grid.segment_length, rounding_mode="floor")
        return "segment", numbers.masked_fill(numbers == grid.num_segments, -1)

    def shown_attentions(self) -> list[ShownAttention]:
        crossing: list[Any] = [layer.cross_segment for layer in self.layers]
        layers = {i: layer.self_attn for i, layer in enumerate(crossing) if layer is not None}
        return [ShownAttention("attention among segments", layers)] if layers else []

    def embed(self, tokens: Tensor, start: int = 0, segments: Tensor | None = None) -> Tensor:
        """(B, N L) token ids -> (B, N L, C); positions count from 0 in each segment."""
        pad = self.dictionary.pad()
        slots = torch.arange(tokens.size(1), device=tokens.device) % self.config.segment_length + pad + 1
        positions = self.embed_positions(slots.masked_fill(tokens.eq(pad), 0))
        x = self.embed_tokens(tokens) + positions + self.embed_token_type.weight[0]
        assert self.layernorm_embedding is not None
        return self.embed_dropout(self.layernorm_embedding(x))

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """The states of all tokens, zeros for padding, and those of the segments."""
        assert layout.blocks is not None
        return self.with_spans(layout.blocks.gather(x), x, layout)

    def max_positions(self) -> int:
        return self.config.segment_length * self.config.max_segments
