"""ERNIE-Sparse: RoBERTa with block-sparse attention and representative tokens (Liu et al. 2022, section 3.2).

A block of the attention begins with its representative, followed by `sparse_block - 1` tokens; the last one may be
shorter. The first `sparse_first` blocks have no representatives: their tokens are global. `--no-hierarchy` omits the
representatives; with `--sparse-first 1 --sparse-last 1` it is BigBird.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..modules.attention import FullAttention
from ..modules.batch_layout import Arranged, BatchLayout, arrange_documents, safe_padding_mask
from ..modules.block_sparse import BlockPattern
from ..modules.heads import pool
from ..modules.layers import EncoderLayer
from ..modules.representative_tokens import UPDATES, WEIGHTS, RepresentativeLayer, count_blocks, insert_representatives
from ..options import OptionError, changed, option
from .config import NEW_PARTS, EncoderConfig
from .encoder import EncoderOut, Vocabulary, build_attentions, token_and_span_states, token_states
from .roberta import RobertaConfig, RobertaEncoder


@dataclass
class ErnieSparseConfig(RobertaConfig):
    """RoBERTa with representative tokens."""

    encoder_attention: str = changed(EncoderConfig, "encoder_attention", "block-sparse")
    representative_weights: str = option(
        "shared",
        "share the projections of the attention among representatives with the layer's attention, or add separate ones",
        choices=WEIGHTS,
    )
    representative_update: str = option(
        "replace",
        "let the attention among representatives replace their states (equation 3), or add to them with a layer norm",
        choices=UPDATES,
        excludes="no_hierarchy",
    )
    representative_positions: str = option(
        "block",
        "give a representative the position of its block's first token, or its own in the sequence",
        choices=("block", "sequence"),
        excludes="no_hierarchy",
    )
    document_pooling: str = option(
        "mean",
        "let a classification head read the pooled states of the representatives, or the state of the first token",
        choices=("mean", "max", "min", "first"),
        excludes="no_hierarchy",
    )
    new_parts = ("representative_attn.", "representative_attn_layer_norm.", *NEW_PARTS)
    copied_parts: ClassVar = {"representative_attn.": "self_attn."}  # as if they were shared until training

    def block_pattern(self) -> BlockPattern:
        return replace(super().block_pattern(), whole_document=not self.no_hierarchy)

    def check(self) -> None:
        if self.no_hierarchy:
            return super().check()
        if self.encoder_attention != "block-sparse":
            text = "representative tokens need {encoder_attention}; or give {no_hierarchy}"
            raise OptionError(text, encoder_attention="block-sparse", no_hierarchy=None)
        pattern = self.block_pattern()
        if pattern.block == 1:
            raise self.error("{sparse_block} has room for a representative only: give at least 2, or {no_hierarchy}")
        if self.max_positions is not None and pattern.first * pattern.block >= self.max_positions:
            text = f"{{sparse_first}} blocks of {pattern.block} tokens leave none of {{max_positions}} for "
            text += "representatives: give fewer or smaller blocks, or {no_hierarchy}"
            raise OptionError(text, sparse_first=pattern.first, max_positions=self.max_positions, no_hierarchy=None)
        return super().check()


class ErnieSparseEncoder(RobertaEncoder):
    """RoBERTa's encoder with a representative before each block; without hierarchy BigBird's."""

    config_class = ErnieSparseConfig
    config: ErnieSparseConfig

    def __init__(self, config: ErnieSparseConfig, vocabulary: Vocabulary) -> None:
        sizes, separate = config.encoder_sizes(), None
        layers: list[nn.Module] = []
        for attention in build_attentions(config, config.encoder_layers):
            if config.no_hierarchy:
                layers.append(EncoderLayer(sizes, attention))
                continue
            if config.representative_weights == "separate":
                separate = FullAttention(replace(sizes.attention_sizes, inner_dim=config.encoder_qkv_dim))
            layers.append(RepresentativeLayer(sizes, attention, separate, config.representative_update))
        super().__init__(config, vocabulary, layers)
        if config.no_hierarchy:
            return
        pattern = config.block_pattern()
        self.num_global = pattern.first * pattern.block  # tokens
        self.block = pattern.block - 1  # tokens after a representative
        self.own_positions = config.representative_positions == "sequence"
        if self.own_positions:  # representatives take some of the positions
            self.max_tokens -= count_blocks(self.max_tokens, self.num_global, self.block + 1)

    def arrange(self, tokens: Tensor) -> Arranged:
        if self.config.no_hierarchy:
            return super().arrange(tokens)
        bos, pad = self.vocabulary.bos, self.vocabulary.pad
        batch = arrange_documents(tokens, pad)
        return insert_representatives(batch, self.num_global, self.block, bos, pad, self.own_positions)

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """Returns the states of tokens, and of representatives if there are any."""
        return token_states(x, layout) if self.config.no_hierarchy else token_and_span_states(x, layout)

    @property
    def reads_first_token(self) -> bool:
        return self.config.no_hierarchy or self.config.document_pooling == "first"

    def document_state(self, head: nn.Module, encoded: EncoderOut) -> Tensor:
        """Pools the representatives to (B, C), or takes the states of the first tokens.

        A document without representatives is read at its first token.
        """
        first = super().document_state(head, encoded)
        if self.reads_first_token:
            return first
        assert encoded.spans is not None and encoded.spans_padding is not None
        padding = encoded.spans_padding
        pooled = pool(self.config.document_pooling, encoded.spans, safe_padding_mask(padding))
        return torch.where(padding.all(dim=1, keepdim=True), first, pooled)
