"""ERNIE-Sparse: RoBERTa with block-sparse attention and representative tokens (Liu et al. 2022, section 3.2).

A block of the attention begins with its representative, followed by `sparse_block - 1` tokens; the last one may be
shorter. The first `sparse_first` blocks have no representatives: their tokens are global. `--no-hierarchy` omits the
representatives; with `--sparse-first 1 --sparse-last 1` it is BigBird.
"""

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..modules.attention import FullAttention, safe_padding_mask
from ..modules.batch_layout import Arranged, arrange_documents
from ..modules.block_sparse import BlockPattern
from ..modules.heads import pool
from ..modules.options import changed, option
from ..modules.representative_tokens import UPDATES, WEIGHTS, RepresentativeLayer, count_blocks, insert_representatives
from .config import NEW_PARTS, EncoderConfig
from .encoder import EncoderOut, EncoderParts, Vocabulary, token_and_span_states
from .roberta import RobertaConfig

DOCUMENT_POOLINGS = ("mean", "max", "min", "first")


@dataclass
class ErnieSparseConfig(RobertaConfig):
    """RoBERTa with representative tokens."""

    encoder_attention: str = changed(EncoderConfig, "encoder_attention", "block-sparse")
    representative_weights: str = option(
        "shared",
        "projections of the attention among representatives: shared with the layer's attention, or separate",
        choices=WEIGHTS,
    )
    representative_update: str = option(
        "replace",
        "the output of this attention replaces the states (equation 3), or is added with a layer norm",
        choices=UPDATES,
    )
    representative_positions: str = option(
        "block",
        "position of a representative: that of its block's first token, or its own in the sequence",
        choices=("block", "sequence"),
    )
    document_pooling: str = option(
        "mean",
        "state that a classification head reads: pooled representatives, or that of the first token",
        choices=DOCUMENT_POOLINGS,
    )
    new_parts = ("representative_attn.", "representative_attn_layer_norm.", *NEW_PARTS)

    def attention_settings(self, name: str | None = None) -> Any:
        attention = super().attention_settings(name)
        if self.no_hierarchy or (name or self.encoder_attention) != "block-sparse":
            return attention
        return replace(attention, pattern=replace(attention.pattern, whole_document=True))

    def check(self) -> None:
        if self.no_hierarchy:
            for name in ("representative_update", "representative_positions", "document_pooling"):
                if (value := getattr(self, name)) != self.__dataclass_fields__[name].default:
                    raise ValueError(f"--{name.replace('_', '-')} {value} has no effect with --no-hierarchy; remove it")
            return super().check()
        if self.encoder_attention != "block-sparse":
            raise ValueError("representative tokens need --encoder-attention block-sparse; or give --no-hierarchy")
        pattern: BlockPattern = self.attention_settings().pattern
        if pattern.block == 1:
            raise ValueError("--sparse-block 1 has room for a representative only: give at least 2, or --no-hierarchy")
        if self.max_positions is not None and pattern.first * pattern.block >= self.max_positions:
            raise ValueError(
                f"--sparse-first {pattern.first} blocks of {pattern.block} tokens leave none of --max-positions "
                f"{self.max_positions} for representatives: give fewer or smaller blocks, or --no-hierarchy"
            )
        return super().check()

    def encoder_parts(self, words: Vocabulary) -> EncoderParts:
        """Builds RoBERTa with a representative before each block; without hierarchy BigBird."""
        if self.no_hierarchy:
            return super().encoder_parts(words)
        assert self.max_positions is not None
        pattern, longest = self.attention_settings().pattern, self.max_positions
        num_global, block = pattern.first * pattern.block, pattern.block - 1
        own_positions = self.representative_positions == "sequence"
        if own_positions:  # representatives take some of the positions
            longest -= count_blocks(longest, num_global, block + 1)
        sizes, layers, separate = self.layer_sizes(), [], None
        for attention in self.layer_attentions(self.encoder_layers):
            if self.representative_weights == "separate":
                separate = FullAttention(*sizes.attention_sizes, self.encoder_qkv_dim)
            layers.append(RepresentativeLayer(sizes, attention, separate, self.representative_update))

        def arrange(tokens: Tensor) -> Arranged:
            batch = arrange_documents(tokens, words.pad)
            return insert_representatives(batch, num_global, block, words.bos, words.pad, own_positions)

        return self.parts_of(words, layers, arrange=arrange, finish=token_and_span_states, max_tokens=longest)

    def document_state(self, head: Any, encoded: EncoderOut) -> Tensor:
        """Pools the representatives to (B, C), or takes the states of the first tokens."""
        if self.no_hierarchy or self.document_pooling == "first":
            return super().document_state(head, encoded)
        assert encoded.spans is not None and encoded.spans_padding is not None
        return pool(self.document_pooling, encoded.spans, safe_padding_mask(encoded.spans_padding))
