"""The encoder of all models: embeddings, layers, and methods that a model overrides.

A forward pass calls `arrange` (order of the tokens, layout of the batch), `embed`, `after_embedding`, the layers and
`finish`. With `roll`, the states of the tokens are rolled (`modules/rolling.py`) before the first layer, and rolled
back after the last.

Legend: B documents, T source tokens, T' positions in the layers, C channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from ..modules.attention import safe_padding_mask
from ..modules.batch_layout import BatchLayout, layout_of_documents
from ..modules.global_tokens import global_tokens
from ..modules.rolling import rolled
from ..modules.sentence_attention import SentenceAttention
from ..modules.sentences import sentence_starts
from ..modules.transformer_layer import EncoderLayer
from .embedding import EmbedsTokens
from .encoder_attention import layer_attentions
from .shown import ShownAttention

UNIT = 64  # tokens of a block, the unit in which `hat look` shows a text without markers


class EncoderOut(NamedTuple):
    """The output of an encoder: one row for each document, which all its hypotheses share."""

    tokens: Tensor  # (B, T, C); the states of padding have no meaning
    tokens_padding: Tensor | None = None  # (B, T) True = padding, no row all padding; None when nothing is padded
    spans: Tensor | None = None  # (B, S, C) states of sentences or segments; None without spans
    spans_padding: Tensor | None = None  # (B, S) True = no such span; None when every document has S

    def select(self, documents: Tensor) -> EncoderOut:
        """The rows of the (D,) given documents."""
        return EncoderOut(*(None if x is None else x.index_select(0, documents) for x in self))  # type: ignore[arg-type]


def run_layer(layer: nn.Module, *args: Any, checkpoint: bool = False, **kwargs: Any) -> Any:
    """`layer(*args, **kwargs)`; with `checkpoint` its activations are recomputed in the backward pass.

    fairseq's own wrapper is reentrant: it fails if a layer uses a tensor that needs a gradient and is no argument.
    """
    if checkpoint and torch.is_grad_enabled():
        return torch_checkpoint(layer, *args, use_reentrant=False, **kwargs)
    return layer(*args, **kwargs)


class Encoder(EmbedsTokens, FairseqEncoder):
    """Embeddings and encoder layers.

    Args:
        config: an `EncoderConfig`.
        dictionary: of the source.
        embed_tokens: token embeddings.
        max_positions: longest document, in tokens.
        num_roles: number of role embeddings; 0: there are none.
    """

    # Whether representatives are additional tokens. If they are tokens of the document, `roll` is refused.
    adds_representatives: ClassVar[bool] = False

    def __init__(
        self,
        config: Any,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        max_positions: int,
        num_roles: int = 0,
    ) -> None:
        super().__init__(dictionary)
        self.config = config
        self.build_embedding(config, "encoder", embed_tokens, max_positions, num_roles)
        self.layers = nn.ModuleList(self.build_layers())
        self.layer_norm = self.final_norm()

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, segments: Tensor | None = None, roll: int = 0
    ) -> EncoderOut:
        """Encodes (B, T) token ids; `src_lengths` is fairseq's and not needed.

        Args:
            segments: (B, T) ids of roles, for a model with role embeddings.
            roll: shift the tokens of each document cyclically by so many positions for the layers. The outputs are in
                the order of the input.
        Raises:
            ValueError: `roll`, but the representatives are tokens of the document.
        """
        tokens, layout = self.arrange(src_tokens)
        roles = None if segments is None else layout.arrange(segments)
        return self.finish(*self.run_layers(self.embed(tokens, segments=roles), layout, roll))

    def run_layers(self, x: Tensor, layout: BatchLayout, roll: int = 0) -> tuple[Tensor, BatchLayout]:
        """(B, T', C) embeddings -> (B, T', C) states of the last layer, and their layout."""
        x, layout = self.after_embedding(x, layout)
        if roll:
            if layout.representatives is not None and not self.adds_representatives:
                raise ValueError(
                    f"roll {roll}: sentences or segments of this model are represented by tokens of the document, "
                    "which cannot be rolled; take a model without them (--no-hierarchy, or another --arch), or roll 0"
                )
            x = rolled(x, layout, roll)
        for layer in self.layers:
            x = run_layer(layer, x, layout, checkpoint=self.config.checkpoint_activations)
        x = rolled(x, layout, -roll) if roll else x
        return (x if self.layer_norm is None else self.layer_norm(x)), layout

    # What a model overrides

    def build_layers(self) -> Iterator[nn.Module]:
        """The layers, in order."""
        sizes = self.config.encoder_sizes()
        for self_attn in layer_attentions(self.config, self.config.encoder_layers):
            yield EncoderLayer(sizes, self_attn)

    def arrange(self, src_tokens: Tensor) -> tuple[Tensor, BatchLayout]:
        """(B, T) token ids -> (B, T') token ids as the layers see them, and the layout of the batch."""
        bos = None if self.config.no_hierarchy else self.dictionary.bos()
        pad, rule = self.dictionary.pad(), self.config.global_tokens
        is_global = None if rule is None else global_tokens(src_tokens, rule, pad, self.dictionary.eos())
        layout = layout_of_documents(src_tokens, pad, bos, is_global)
        return layout.arrange(src_tokens), layout

    def after_embedding(self, x: Tensor, layout: BatchLayout) -> tuple[Tensor, BatchLayout]:
        """(B, T', C) embeddings and the layout, changed or not."""
        return x, layout

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """(B, T', C) states of the last layer -> what the encoder returns."""
        padding = None if layout.padding is None else safe_padding_mask(layout.restore(layout.padding))
        return EncoderOut(layout.restore(x), padding)

    def with_spans(self, tokens: Tensor, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """The encoder's result with the states of representatives beside those of the (B, T, C) tokens."""
        assert layout.representatives is not None
        states, padding = layout.representatives.gather(x), layout.representatives.padding
        if padding is None:
            padding = states.new_zeros(states.shape[:2], dtype=torch.bool)
        return EncoderOut(tokens, None, states, padding)

    def units(self, tokens: Tensor) -> tuple[str, Tensor]:
        """The units of a text in analysis: sentences, or blocks of 64 tokens where it has no markers.

        Args:
            tokens: (B, T) token ids, padded on the right.
        Returns:
            the name of a unit, and the (B, T) number of the unit of each token, from 0; -1 for tokens without a unit.
        """
        padding = tokens.eq(self.dictionary.pad())
        starts = sentence_starts(tokens, self.dictionary.bos(), self.dictionary.pad())
        if not self.config.no_hierarchy or int(starts.sum()) > len(tokens):
            return "sentence", (starts.cumsum(dim=1) - 1).masked_fill(padding, -1)
        numbers = torch.arange(tokens.size(1), device=tokens.device) // UNIT
        return "block", numbers.expand_as(tokens).masked_fill(padding, -1)

    def shown_attentions(self) -> list[ShownAttention]:
        """The attentions whose weights can be shown."""
        layers: Iterator[tuple[int, Any]] = enumerate(self.layers)
        pooled = {i: layer.self_attn for i, layer in layers if hasattr(layer.self_attn, "middle_tokens")}
        return [ShownAttention("attention to pooled tokens", pooled, "tokens", "cells")] if pooled else []

    def final_norm(self) -> nn.LayerNorm | None:
        """The norm after the last layer of a pre-norm stack."""
        sizes = self.config.encoder_sizes()
        return nn.LayerNorm(sizes.embed_dim, eps=sizes.layer_norm_eps) if sizes.normalize_before else None

    def max_positions(self) -> int:
        return self.embed_positions.max_positions


class SentenceAttendingEncoder(Encoder):
    """An encoder whose layers also attend to the sentences (Rohde et al. 2021, section 7)."""

    positions_flag = "--max-positions"

    def build_layers(self) -> Iterator[nn.Module]:
        sizes, sentence_attn = self.config.encoder_sizes(), None if self.config.no_hierarchy else SentenceAttention
        for self_attn in layer_attentions(self.config, self.config.encoder_layers):
            yield EncoderLayer(sizes, self_attn, sentence_attn, str(self.config.sentence_queries))

    def shown_attentions(self) -> list[ShownAttention]:
        layers = {i: layer.sentence_attn for i, layer in enumerate(self.layers) if layer.sentence_attn is not None}
        queries = "tokens" if str(self.config.sentence_queries) == "tokens" else "units"
        shown = [ShownAttention("attention to sentences", layers, queries)] if layers else []
        return [*shown, *super().shown_attentions()]
