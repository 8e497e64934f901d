"""How much a model looks at each segment of a document: attention between segments, and what max pooling takes.

`attention` is the mean of attention weights over layers and heads. In `hierarchical_transformer` (Chalkidis et al.
2022) these are the cross-segment layers, and the mean is over all segments that ask; in `hat_roberta` (Rohde et al.
2021) the sentence attention of every layer, asked by the first `<s>`, whose state is classified. It says where
information may have come from. It does not say what was done with it: values, residual connections and the layers above
decide that, so a segment with little weight can decide a label, and a large weight is no evidence that another text
there would have changed it. In `hat_roberta` tokens also reach each other directly, which is not in these numbers.

`share`, only with max pooling, is the share of channels in which a segment has the largest state: exactly that much of
the classified vector is copied from it. The state itself depends on other segments through the cross-segment layers.

Both are sums to 1 over a document's own segments (unless the head also pools segments that do not exist), and depend
neither on batch mates nor on padding. Cost: one more attention over N segments for each layer.

Legend: B documents, T tokens, N segments of the longest document, H heads, C channels.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from ..models.hat_roberta import HatRobertaModel
from ..models.hierarchical_transformer import HierarchicalTransformerModel
from ..modules.attention import MultiheadAttention
from ..modules.sentences import sentence_starts


class SegmentWeights:
    """Records while it is entered; rows must be padded on the right, as our tasks pad them.

        with SegmentWeights(model) as weights:
            model(tokens, classification_head_name=name)
        weights.attention, weights.share

    Args:
        model: in evaluation mode, one of the two models above; any other has nothing to record.
        layer: number of the one layer to look at, from 0; None for all that attend between segments.
    Raises:
        ValueError: the layer does not attend between segments, or the model is training.
    """

    def __init__(self, model: Any, layer: int | None = None) -> None:
        if model.training:
            raise ValueError("weights of segments are read in evaluation mode: call model.eval() first")
        attentions = cross_attentions(model)
        if layer is not None and layer not in attentions:
            there = ", ".join(map(str, attentions)) or "none"
            raise ValueError(f"layer {layer} does not attend between segments (the layers that do: {there})")
        self._attentions = list(attentions.values()) if layer is None else [attentions[layer]]
        heads = getattr(model, "classification_heads", {})
        poolings = [getattr(head, "pooling", None) for head in heads.values()]
        self._poolings = [pooling for pooling in poolings if pooling is not None and pooling.pooling == "max"]
        self._only_first = isinstance(model, HatRobertaModel)
        self._handles: list[Any] = []
        self._recorded: list[Tensor] = []
        self.share: Tensor | None = None  # (B, N)

    def __enter__(self) -> SegmentWeights:
        self._recorded, self.share = [], None
        for attention in self._attentions:
            self._handles.append(attention.register_forward_hook(self._record_attention, with_kwargs=True))
        for pooling in self._poolings:
            self._handles.append(pooling.register_forward_hook(self._record_share))
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def attention(self) -> Tensor | None:
        """(B, N) weights of the forward pass that was recorded, 0 for padding; None if no layer attends so."""
        return torch.stack(self._recorded).mean(dim=0) if self._recorded else None

    def _record_attention(self, module: MultiheadAttention, args: Any, kwargs: Any, output: Any) -> None:
        given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        mask = given.get("key_padding_mask")
        weights = attention_weights(module, given["query"], given.get("memory"), mask, self._only_first)
        mean = weights.float().mean(dim=1)  # over heads: B x queries x N
        if mask is None or self._only_first:
            self._recorded.append(mean.mean(dim=1))
        else:
            asking = (~mask).to(mean).unsqueeze(-1)
            self._recorded.append((mean * asking).sum(dim=1) / asking.sum(dim=1))

    def _record_share(self, module: nn.Module, args: tuple[Tensor, Tensor], output: Tensor) -> None:
        self.share = max_pooling_share(*args)


def cross_attentions(model: Any) -> dict[int, MultiheadAttention]:
    """The attention between segments of each layer that has one, by the number of the layer."""
    layers: Any = ()
    if isinstance(model, HierarchicalTransformerModel):
        layers = model.encoder.layers
        return {i: layer.cross_segment.self_attn for i, layer in enumerate(layers) if layer.cross_segment is not None}
    if isinstance(model, HatRobertaModel) and model.encoder.sentence_encoder.hierarchical:
        layers = model.encoder.sentence_encoder.layers
    return {i: layer.sentence_attn for i, layer in enumerate(layers)}


def attention_weights(
    module: MultiheadAttention, query: Tensor, memory: Tensor | None, mask: Tensor | None, only_first: bool = False
) -> Tensor:
    """(B, H, queries, N) weights that the module gives these inputs: its own projections, an explicit softmax.

    Args:
        query: (B, queries, C); memory: (B, N, C), None for self-attention; mask: (B, N), True = padding, or None.
        only_first: of the first query alone.
    """
    memory = query if memory is None else memory
    # not module(...), which would run the hooks again
    weights = module.forward(query[:, :1] if only_first else query, memory, mask, need_weights=True)[1]
    assert weights is not None
    return weights


def max_pooling_share(segments: Tensor, padding_mask: Tensor) -> Tensor:
    """(B, N, C) states and their (B, N) padding mask -> (B, N): share of the channels whose maximum a segment has.

    Of equal maxima the first one counts.
    """
    winner = segments.masked_fill(padding_mask.unsqueeze(-1), float("-inf")).argmax(dim=1)  # B x C
    won = winner.new_zeros(padding_mask.shape).scatter_add(1, winner, torch.ones_like(winner))
    return won / winner.size(1)


def segment_numbers(model: Any, tokens: Tensor) -> Tensor:
    """(B, T) token ids -> (B, T) number of the segment that each token belongs to, from 0; -1 for padding.

    In a model without segments every document is one.
    """
    if isinstance(model, HierarchicalTransformerModel):
        grid = model.encoder.grid(tokens)
        numbers = grid.slots.div(grid.segment_length, rounding_mode="floor")
        return numbers.masked_fill(numbers == grid.num_segments, -1)
    dictionary = model.encoder.dictionary
    padding = tokens.eq(dictionary.pad())
    if not cross_attentions(model):
        return padding.long().neg()
    starts = sentence_starts(tokens, dictionary.bos(), dictionary.pad())
    return (starts.cumsum(dim=1) - 1).masked_fill(padding, -1)
