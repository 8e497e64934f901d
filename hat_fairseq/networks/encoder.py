"""The encoder of all networks, by composition: an embedding, layers, and two functions before and after them.

What differs between HAT, segments, windows and representatives is passed in (`EncoderParts`).

Legend: B documents, T source tokens, T' slots in the layers, S sentences or segments, C channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from ..modules.attention import safe_padding_mask
from ..modules.batch_layout import Arranged, BatchLayout, Slots
from ..modules.embedding import EmbeddingSizes, Embeds


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
        tokens: (B, T, C); the states of padding have no meaning.
        tokens_padding: (B, T) True = padding, no row all padding; None when nothing is padded.
        spans: (B, S, C) states of sentences, segments or blocks; None without spans.
        spans_padding: (B, S) True = no such span; None when every document has S.
        layout: that of the batch; None after `select`.
    """

    tokens: Tensor
    tokens_padding: Tensor | None = None
    spans: Tensor | None = None
    spans_padding: Tensor | None = None
    layout: BatchLayout | None = None

    def select(self, documents: Tensor) -> EncoderOut:
        """Selects the rows of the (D,) documents, without their layout."""
        tensors = (self.tokens, self.tokens_padding, self.spans, self.spans_padding)
        return EncoderOut(*(None if x is None else x.index_select(0, documents) for x in tensors))  # type: ignore[arg-type]


def run_layer(layer: nn.Module, *args: Any, checkpoint: bool = False, **kwargs: Any) -> Any:
    """Calls `layer(*args, **kwargs)`; with `checkpoint` its activations are recomputed in the backward pass.

    fairseq's own wrapper is reentrant: it fails if a layer uses a tensor that needs a gradient and is no argument.
    """
    if checkpoint and torch.is_grad_enabled():
        return torch_checkpoint(layer, *args, use_reentrant=False, **kwargs)
    return layer(*args, **kwargs)


def rolled(batch: Arranged, shift: int) -> Arranged:
    """Shifts the tokens of each document cyclically by `shift` places, and their positions with them.

    Liu et al. 2022 (ERNIE-Sparse), section 3.3 and A.4. The pattern of the attention stays in place: token i of n sits
    where token (i + shift) mod n was. Padding and inserted representatives do not move, so the result does not depend
    on other documents of the batch. With full attention nothing changes. O(T log T), no host-device synchronisation.

    Raises:
        ValueError: representatives that are tokens of the document; the layers would run on the wrong ones.
    """
    layout, size = batch.layout, batch.tokens.size(1)
    if layout.representatives is not None and not layout.representatives.inserted:
        raise ValueError(
            f"roll {shift}: sentences or segments of this model are represented by tokens of the document, which "
            "cannot be rolled; take a model without them (--no-hierarchy, or another --arch), or roll 0"
        )
    slots = layout.slots_of(batch.tokens)
    real = slots < size
    rank = (real.cumsum(dim=1) - 1 + shift) % real.sum(dim=1, keepdim=True).clamp(min=1)
    target = slots.sort(dim=1).values.gather(1, rank.clamp(min=0)).masked_fill(~real, size)

    def move(x: Tensor) -> Tensor:
        x = F.pad(x, (0, 1))
        return x.scatter(1, target, x.gather(1, slots))[:, :size]

    layout = replace(layout, slots=Slots(target, size))
    return Arranged(move(batch.tokens), move(batch.rows), layout)


def token_states(x: Tensor, layout: BatchLayout) -> EncoderOut:
    """Returns the states of the tokens alone: the `finish` of an encoder without spans."""
    padding = layout.padding
    if padding is not None and layout.slots is not None:  # the output has the places of the input, not the slots
        padding = layout.slots.numbers == layout.slots.size
    return EncoderOut(layout.gather(x), None if padding is None else safe_padding_mask(padding), layout=layout)


def token_and_span_states(x: Tensor, layout: BatchLayout) -> EncoderOut:
    """Returns the states of tokens and representatives; of a document without any, that of slot 0."""
    assert layout.representatives is not None
    states, padding = layout.representatives.gather(x), layout.representatives.padding
    if padding is None:
        padding = states.new_zeros(states.shape[:2], dtype=torch.bool)
    return replace(token_states(x, layout), spans=states, spans_padding=padding)


@dataclass
class EncoderParts:
    """What an encoder is composed of.

    Attributes:
        words: size and special ids of the vocabulary of the source.
        table: embeddings of the tokens.
        embedding: sizes of the embeddings of tokens and positions.
        layers: modules that take (x, layout).
        arrange: (B, T) token ids -> the batch as the layers see it.
        finish: (B, T', C) states after the last layer and `layer_norm`, and the layout -> the output.
        layer_norm: after the last layer; None in a post-norm stack.
        more: further modules that these functions use, by their names in checkpoints.
        max_tokens: the longest document; 0: as many tokens as positions.
        fits: whether a document of (T,) token ids fits; None: if it has at most `max_tokens`.
        safe_tokens: up to so many tokens every document fits; 0: `max_tokens`.
        checkpoint: recompute each layer in the backward pass.
    """

    words: Vocabulary
    table: nn.Embedding
    embedding: EmbeddingSizes
    layers: Iterable[nn.Module]
    arrange: Callable[[Tensor], Arranged]
    finish: Callable[[Tensor, BatchLayout], EncoderOut] = token_states
    layer_norm: nn.Module | None = None
    more: Mapping[str, nn.Module | None] = field(default_factory=dict)
    max_tokens: int = 0
    fits: Callable[[Tensor], bool] | None = None
    safe_tokens: int = 0
    checkpoint: bool = False


class Encoder(Embeds, nn.Module):
    """Embeddings and encoder layers."""

    def __init__(self, parts: EncoderParts) -> None:
        super().__init__()
        self.compose(parts)

    def compose(self, parts: EncoderParts) -> None:
        """Builds the encoder; apart from `__init__`, because a fairseq encoder has another constructor."""
        self.build_embedding(parts.table, parts.embedding)
        self.layers = nn.ModuleList(parts.layers)
        self.layer_norm = parts.layer_norm
        for name, module in parts.more.items():
            self.add_module(name, module)
        self.words, self.arrange, self.finish = parts.words, parts.arrange, parts.finish
        self.max_tokens, self.checkpoint = parts.max_tokens or parts.embedding.positions, parts.checkpoint
        self.safe_tokens = parts.safe_tokens or self.max_tokens
        self.fits = parts.fits or (lambda tokens: len(tokens) <= self.max_tokens)

    def forward(self, src_tokens: Tensor, roles: Tensor | None = None, roll: int = 0) -> EncoderOut:
        """Encodes (B, T) token ids.

        Args:
            roles: (B, T) ids of roles, for a model with role embeddings.
            roll: shift the tokens of each document cyclically by so many positions for the layers, see `rolled`. The
                outputs are in the order of the input.
        """
        batch = self.arrange(src_tokens)
        if self.max_tokens <= self.embedding_sizes.positions:  # otherwise positions begin anew in each segment
            self.check_positions(batch.rows)
        if roll:
            batch = rolled(batch, roll)
        layout = batch.layout
        if roles is not None and layout.slots is not None:
            roles = layout.slots.scatter(roles, self.pad)
        x = self.embed(batch.tokens, batch.rows, roles)
        for layer in self.layers:
            x = run_layer(layer, x, layout, checkpoint=self.checkpoint)
        return self.finish(x if self.layer_norm is None else self.layer_norm(x), layout)
