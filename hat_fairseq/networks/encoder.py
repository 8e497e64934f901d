"""The encoder of all networks: an embedding and layers, with a method before the layers and one after them.

What differs between HAT, segments, windows and representatives is in `arrange` and `finish`, one class for each paper.

Legend: B documents, T source tokens, T' slots in the layers, S sentences or segments, C channels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..kernels import prepare_mask
from ..modules.attention import Projections
from ..modules.batch_layout import (
    Arranged,
    BatchLayout,
    arrange_documents,
    rolled,
    safe_padding_mask,
)
from ..modules.embedding import EmbeddingSizes, Embeds
from ..modules.layers import EncoderLayer, Masked, run_in_parts, run_layer
from ..modules.sliding_window import global_tokens
from .config import ATTENTIONS, EncoderConfig, TokenEncoderConfig
from .families import parse_layers

UNLIMITED = 2**31 - 1  # tokens of a document that an encoder takes at most


@dataclass(frozen=True)
class Vocabulary:
    """The size of a dictionary and the ids of its special tokens, which are fairseq's."""

    size: int
    bos: int = 0
    pad: int = 1
    eos: int = 2


@dataclass
class EncoderOut:
    """The output of an encoder: one row for each document, which all its hypotheses share.

    Attributes:
        tokens: (B, T, C); the states of padding have no meaning. Of `hat_units`, which has none, the spans.
        tokens_padding: (B, T) True = padding, no row all padding; None when nothing is padded.
        spans: (B, S, C) states of sentences, segments or blocks; None without spans.
        spans_padding: (B, S) True = no such span; None when every document has S.
        layout: that of the batch; None after `select`, and of `hat_units`.
    """

    tokens: Tensor
    tokens_padding: Tensor | None = None
    spans: Tensor | None = None
    spans_padding: Tensor | None = None
    layout: BatchLayout | None = None

    @cached_property
    def masked(self) -> tuple[Masked, Masked | None]:
        """Returns the tokens and the spans for a decoder, with their masks; made once for all steps of a search."""
        tokens = self.tokens, mask_of_keys(self.tokens_padding, self.tokens.dtype)
        return tokens, None if self.spans is None else (self.spans, mask_of_keys(self.spans_padding, self.spans.dtype))

    def select(self, documents: Tensor) -> EncoderOut:
        """Selects the rows of the (D,) documents, without their layout."""
        tensors = (self.tokens, self.tokens_padding, self.spans, self.spans_padding)
        return EncoderOut(*(None if x is None else x.index_select(0, documents) for x in tensors))  # type: ignore[arg-type]


def mask_of_keys(padding_mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Maps (D, K) padding mask -> (D, 1, 1, K) mask for `kernels.attend`; no row is all padding. None stays None."""
    return None if padding_mask is None else prepare_mask(~padding_mask[:, None, None], dtype)


def token_states(x: Tensor, layout: BatchLayout) -> EncoderOut:
    """Returns the states of the tokens alone."""
    padding = layout.padding
    if padding is not None and layout.slots is not None:
        padding = layout.slots.index == layout.slots.size
    if padding is not None and layout.empty_rows:
        padding = safe_padding_mask(padding)
    return EncoderOut(layout.gather(x), padding, layout=layout)  # the places of the input, not the slots


def token_and_span_states(x: Tensor, layout: BatchLayout) -> EncoderOut:
    """Returns the states of tokens and representatives; of a document without any, that of slot 0."""
    assert layout.representatives is not None
    states, padding = layout.representatives.gather(x), layout.representatives.padding
    if padding is None:
        padding = states.new_zeros(states.shape[:2], dtype=torch.bool)
    return replace(token_states(x, layout), spans=states, spans_padding=padding)


def build_attentions(config: EncoderConfig, num_layers: int) -> list[nn.Module]:
    """Builds the self-attention of each of `num_layers` layers; ValueError for layers that do not exist."""
    chosen, attention = parse_layers(config.encoder_attention_layers, num_layers), config.attention()
    sizes, other = config.encoder_sizes().attention_sizes, ATTENTIONS[attention.other_layers]
    local, elsewhere, built = config.local_layers(), replace(config, segment_window=None), list[Any]()
    for layer in range(num_layers):
        here = config if config.family.local_layers is None or layer in local else elsewhere
        built.append((attention if layer in chosen else other).build(here, sizes, layer))
    for layer, each in enumerate(built):
        if (projections := config.projections(layer)) != Projections():
            each.configure(projections)
    return built


def without_first_norm(layers: Iterable[nn.Module]) -> list[nn.Module]:
    """Removes the norm with which the first layer of a pre-norm stack begins."""
    first, *others = layers
    assert isinstance(first, EncoderLayer)
    first.self_attn_layer_norm = nn.Identity()
    return [first, *others]


class Encoder(Embeds, nn.Module):
    """Embeddings and encoder layers.

    Args:
        vocabulary: of the source.
        table: embeddings of the tokens.
        embedding: sizes of the embeddings of tokens and positions.
        layers: modules that take (x, layout), and what else `run_layers` gives them.
        layer_norm: after the last layer; None in a post-norm stack.
        checkpoint: recompute layers in the backward pass.

    Attributes:
        max_tokens: the longest document; by default as many tokens as positions.
        of_units: it encodes each turn or sentence by itself, and its heads read vectors of these (`units`).
    """

    config_class: ClassVar[type[EncoderConfig]]
    of_units: ClassVar[bool] = False
    config: Any

    def __init__(
        self,
        vocabulary: Vocabulary,
        table: nn.Embedding,
        embedding: EmbeddingSizes,
        layers: Iterable[nn.Module],
        layer_norm: nn.Module | None = None,
        checkpoint: bool = False,
    ) -> None:
        nn.Module.__init__(self)  # not super(): a class of fairseq, with another constructor, may stand beside this one
        self.build_embedding(table, embedding)
        self.layers = nn.ModuleList(layers)
        self.layer_norm = layer_norm
        self.vocabulary, self.max_tokens, self.checkpoint = vocabulary, embedding.positions, checkpoint

    def arrange(self, tokens: Tensor) -> Arranged:
        """Maps (B, T) ids -> the batch as the layers see it."""
        raise NotImplementedError

    def run_layers(self, x: Tensor, layout: BatchLayout, *arguments: Any) -> Tensor:
        """Maps (B, T', C) embeddings -> the states after the last layer, before `layer_norm`.

        With `checkpoint` a layer that looks at neighbours alone is recomputed in groups of tokens, others as a whole.
        `arguments`: further ones of every layer.
        """
        recomputed = self.checkpoint and torch.is_grad_enabled()
        for layer in self.layers:
            if recomputed and isinstance(layer, EncoderLayer) and (reach := layer.reach(layout)) is not None:
                x = run_in_parts(layer, x, layout, reach)
            else:
                x = run_layer(layer, x, layout, *arguments, checkpoint=self.checkpoint)
        return x

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        """Makes the output of the (B, T', C) states after the last layer and `layer_norm`."""
        return token_states(x, layout)

    def fits(self, tokens: Tensor) -> bool:
        """Returns whether a document of these (T,) ids is not too long."""
        return len(tokens) <= self.max_tokens

    def forward(
        self, src_tokens: Tensor, roles: Tensor | None = None, roll: int = 0, embeddings: Tensor | None = None
    ) -> EncoderOut:
        """Encodes (B, T) token ids.

        Args:
            roles: (B, T) ids of roles, for a model with role embeddings.
            roll: shift the tokens of each document cyclically by so many positions for the layers, see `rolled`. The
                outputs are in the order of the input.
            embeddings: (B, T, C), of the tokens; None: those of the table. The ids still say where the padding and
                the markers are.
        """
        batch = self.arrange(src_tokens)
        self.check_positions(batch.rows)
        if roll:
            batch = rolled(batch, roll)
        layout, representatives = batch.layout, batch.layout.representatives
        if self.embed_positions is None and (roll or (representatives is not None and representatives.inserted)):
            layout = replace(layout, positions=batch.rows)  # a slot's number is not its position
        if layout.slots is not None:  # a token is not in the place that it has in the input
            roles = None if roles is None else layout.slots.scatter(roles, self.pad)
            if embeddings is not None:
                embeddings = layout.slots.put(self.embed_tokens(batch.tokens), embeddings)
        x = self.embed(batch.tokens, batch.rows, roles, embeddings)
        x = self.run_layers(x, layout)
        return self.finish(x if self.layer_norm is None else self.layer_norm(x), layout)


class DocumentEncoder(Encoder):
    """An encoder whose tokens stay in their order; the `<s>` tokens represent sentences, unless `no_hierarchy`."""

    def __init__(
        self,
        config: TokenEncoderConfig,
        vocabulary: Vocabulary,
        table: nn.Embedding,
        embedding: EmbeddingSizes,
        layers: Iterable[nn.Module],
    ) -> None:
        norm = config.encoder_sizes().final_norm()
        layers = without_first_norm(layers) if not config.family.first_norm else layers
        super().__init__(vocabulary, table, embedding, layers, norm, config.checkpoint_activations)
        self.config = config

    def arrange(self, tokens: Tensor) -> Arranged:
        config, (bos, pad, eos) = self.config, (self.vocabulary.bos, self.vocabulary.pad, self.vocabulary.eos)
        mark_global = None
        if config.global_tokens is not None:
            mark_global = partial(global_tokens, rule=config.global_tokens, pad=pad, eos=eos)
        if config.no_hierarchy:
            return arrange_documents(tokens, pad, mark_global=mark_global)
        return arrange_documents(tokens, pad, bos, mark_global, means=config.span_pooling == "mean")
