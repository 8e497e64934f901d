"""ERNIE-Sparse (Liu et al. 2022): RoBERTa with block-sparse attention and representative tokens (HST).

A block of the attention begins with its representative, followed by `sparse_block - 1` tokens; the last one may be
shorter. The first `--sparse-first` blocks have no representatives: their tokens are global. `--no-hierarchy` omits the
representatives; with `--sparse-first 1 --sparse-last 1` it is BigBird.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.attention import safe_padding_mask
from ..modules.batch_layout import BatchLayout, layout_of_documents
from ..modules.heads import ClassificationHead
from ..modules.representative_tokens import UPDATES, WEIGHTS, RepresentativeLayer, RepresentativeSlots
from ..modules.segment_pooling import SegmentPooling
from .config import EncoderConfig, RobertaConfig, flag, redefault
from .encoder import Encoder, EncoderOut
from .encoder_attention import NEW_PARTS, block_pattern, layer_attentions
from .hat_roberta import HatRobertaEncoder, HatRobertaModel, hat_roberta_base, hat_roberta_tiny
from .hat_transformer import set_defaults
from .shown import ShownAttention

DOCUMENT_POOLINGS = ("mean", "max", "min", "first")


@dataclass
class ErnieSparseConfig(RobertaConfig):
    """Hyperparameters of RoBERTa with representative tokens."""

    encoder_attention: str = redefault(EncoderConfig, "encoder_attention", "block-sparse")
    representative_weights: ChoiceEnum(list(WEIGHTS)) = flag(  # type: ignore[valid-type]
        "shared", "projections of the attention among representatives: shared with the layer's attention, or separate"
    )
    representative_update: ChoiceEnum(list(UPDATES)) = flag(  # type: ignore[valid-type]
        "replace", "the output of this attention replaces the states (equation 3), or is added with a layer norm"
    )
    representative_positions: ChoiceEnum(["block", "sequence"]) = flag(  # type: ignore[valid-type]
        "block", "position of a representative: that of its block's first token, or its own in the sequence"
    )
    document_pooling: ChoiceEnum(list(DOCUMENT_POOLINGS)) = flag(  # type: ignore[valid-type]
        "mean", "state that a classification head reads: pooled representatives, or that of the first token"
    )

    def check(self) -> None:
        if self.encoder_attention != "block-sparse" and not self.no_hierarchy:
            raise ValueError("representative tokens need --encoder-attention block-sparse; or give --no-hierarchy")
        if self.sparse_block == 1 and not self.no_hierarchy:
            raise ValueError("--sparse-block 1 has room for a representative only: give at least 2, or --no-hierarchy")
        for name in ("representative_update", "representative_positions", "document_pooling"):
            value = str(getattr(self, name))
            if self.no_hierarchy and value != self.__dataclass_fields__[name].default:
                raise ValueError(f"--{name.replace('_', '-')} {value} has no effect with --no-hierarchy; remove it")
        pattern, longest = block_pattern(self), self.max_positions
        if not self.no_hierarchy and longest is not None and pattern.first * pattern.block >= longest:
            raise ValueError(
                f"--sparse-first {pattern.first} blocks of {pattern.block} tokens leave none of --max-positions "
                f"{longest} for representatives: give fewer or smaller blocks, or --no-hierarchy"
            )
        super().check()


class SparseEncoder(Encoder):
    """The encoder without representative tokens."""

    positions_flag = "--max-positions"


class RepresentativeEncoder(SparseEncoder):
    """The encoder with a representative token before each block of tokens."""

    adds_representatives = True

    @property
    def slots(self) -> RepresentativeSlots:
        pattern = block_pattern(self.config)
        return RepresentativeSlots(pattern.first * pattern.block, pattern.block - 1)

    def build_layers(self) -> Iterator[nn.Module]:
        sizes, config = self.config.encoder_sizes(), self.config
        for self_attn in layer_attentions(config, config.encoder_layers):
            weights, update = str(config.representative_weights), str(config.representative_update)
            yield RepresentativeLayer(sizes, self_attn, weights, update)

    def arrange(self, src_tokens: Tensor) -> tuple[Tensor, BatchLayout]:
        pad, bos = self.dictionary.pad(), self.dictionary.bos()
        layout = layout_of_documents(src_tokens, pad)
        return self.slots.insert(layout.arrange(src_tokens), layout, bos, pad)

    def position_vectors(self, tokens: Tensor, start: int) -> Tensor:
        if str(self.config.representative_positions) == "sequence":
            return super().position_vectors(tokens, start)
        pad = self.dictionary.pad()
        numbers = self.slots.token_numbers(tokens.size(1), tokens.device)
        rows = (numbers + pad + 1).masked_fill(tokens.eq(pad), pad)
        longest = self.embed_positions.max_positions + pad
        if tokens.size(1) > longest - pad and int(rows.max()) > longest:
            raise ValueError(f"a row of {int(rows.max()) - pad} tokens, but only {longest - pad} positions")
        return self.embed_positions.at(rows)

    def max_positions(self) -> int:
        """Tokens of the longest document; with positions in the sequence representatives take some of them."""
        longest = super().max_positions()
        if str(self.config.representative_positions) != "sequence":
            return longest
        return longest - -(-max(longest - self.slots.num_global, 0) // (self.slots.block + 1))

    def units(self, tokens: Tensor) -> tuple[str, Tensor]:
        """The blocks of the representatives; if there are none, the document."""
        slots, numbers = self.slots, torch.arange(tokens.size(1), device=tokens.device)
        blocks = (numbers - slots.num_global).div(slots.block, rounding_mode="floor").clamp(min=-1)
        if tokens.size(1) <= slots.num_global:
            blocks = torch.zeros_like(numbers)
        return "block", blocks.expand_as(tokens).masked_fill(tokens.eq(self.dictionary.pad()), -1)

    def shown_attentions(self) -> list[ShownAttention]:
        return [ShownAttention("attention among representatives", dict(enumerate(self.layers)), covers=False)]

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """The states of the tokens, and those of the representatives; without any, that of the first token."""
        assert layout.blocks is not None
        return self.with_spans(layout.restore(layout.blocks.gather(x)), x, layout)


@register_model("ernie_sparse")
class ErnieSparseModel(HatRobertaModel):
    """The state of a document is pooled from its representatives, or that of its first token."""

    config_class = ErnieSparseConfig
    new_parts = ("representative_attn.", "representative_attn_layer_norm.", *NEW_PARTS)

    @classmethod
    def build_encoder(cls, config: Any, task: Any) -> nn.Module:
        encoder_class = SparseEncoder if config.no_hierarchy else RepresentativeEncoder
        return HatRobertaEncoder(config, task.source_dictionary, encoder_class)

    def document_state(self, head: ClassificationHead, encoded: EncoderOut, src_tokens: Tensor) -> Tensor:
        """(B, C): the pooled representatives, or the states at the first tokens."""
        pooling = str(self.config.document_pooling)
        if self.config.no_hierarchy or pooling == "first":
            return super().document_state(head, encoded, src_tokens)
        assert encoded.spans is not None and encoded.spans_padding is not None
        pool = SegmentPooling(pooling, self.config.encoder_embed_dim)  # without parameters
        return pool(encoded.spans, safe_padding_mask(encoded.spans_padding))


def bigbird(args: Namespace) -> None:
    """No representatives; one global block at either end, which is the default of the options."""
    set_defaults(args, no_hierarchy=True, encoder_attention="block-sparse")


def representatives(args: Namespace, weights: str) -> None:
    """Two global blocks at the beginning: 128 global, 192 neighbouring and 192 random tokens (Table 9)."""
    set_defaults(args, sparse_first=2, sparse_last=0, representative_weights=weights)


@register_model_architecture("ernie_sparse", "ernie_sparse_base")
def ernie_sparse_base(args: Namespace) -> None:
    """RoBERTa-base's sizes, 4096 tokens; the projections of the sparse attention are shared (Tables 8 and 9)."""
    representatives(args, "shared")
    set_defaults(args, max_positions=4096, extend_positions="tile")
    hat_roberta_base(args)


@register_model_architecture("ernie_sparse", "ernie_sparse_tiny")
def ernie_sparse_tiny(args: Namespace) -> None:
    """4 layers of 64/128, blocks of 8: for tests and for trying things out."""
    representatives(args, "shared")
    set_defaults(args, sparse_block=8, sparse_random=1)
    hat_roberta_tiny(args)
