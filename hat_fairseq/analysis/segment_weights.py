"""How much a model looks at each segment of a document: attention between segments, and what max pooling takes.

`attention` is the mean of attention weights over layers and heads. In `hierarchical_transformer` (Chalkidis et al.
2022) the layers are the cross-segment layers, and the mean also runs over all segments as queries. In `hat_roberta`
(Rohde et al. 2021) it is the sentence attention of every layer, and the only query is the first `<s>`, whose state is
classified. The weights say where information may have come from, not how it was used: values, residual connections and
later layers decide that. A segment with a small weight can decide a label, and a large weight is no evidence that
another text there would have changed it. In `hat_roberta` tokens also attend to each other directly, which these
numbers leave out.

`share`, only with max pooling, is the share of channels in which a segment has the largest state: the classified vector
copies exactly this share from it. The state itself depends on other segments through the cross-segment layers.

Both sum to 1 over the segments of a document (unless the head also pools segments that do not exist). Neither depends
on the other documents of the batch or on padding. Cost: one more attention over N segments for each layer.

Legend: B documents, T tokens, N segments of the longest document, H heads, C channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..modules.batch_layout import BatchLayout


class SegmentWeights:
    """Records forward passes inside a `with` block; rows must be padded on the right, as the tasks of this package do.

        with SegmentWeights(model) as weights:
            model(tokens, classification_head_name=name)
        weights.attention, weights.share

    Args:
        model: in evaluation mode. Nothing is recorded for a model without `span_attentions`.
        layer: number of the one layer to record, from 0; None for all that attend between segments.
    Raises:
        ValueError: the layer does not attend between segments, or the model is training.
    """

    def __init__(self, model: Any, layer: int | None = None) -> None:
        if model.training:
            raise ValueError("weights of segments are read in evaluation mode: call model.eval() first")
        attentions = model.span_attentions() if hasattr(model, "span_attentions") else {}
        if layer is not None and layer not in attentions:
            there = ", ".join(map(str, attentions)) or "none"
            raise ValueError(f"layer {layer} does not attend between segments (the layers that do: {there})")
        self._attentions = list(attentions.values()) if layer is None else [attentions[layer]]
        heads = getattr(model, "classification_heads", {})
        poolings = [getattr(head, "pooling", None) for head in heads.values()]
        self._poolings = [pooling for pooling in poolings if pooling is not None and pooling.pooling == "max"]
        self._first_query_only = getattr(model, "reads_first_token", False)
        self._handles: list[Any] = []
        self._recorded: list[Tensor] = []
        self.share: Tensor | None = None  # (B, N)

    def __enter__(self) -> SegmentWeights:
        self._recorded, self.share = [], None
        for attention in self._attentions:
            self._handles.append(attention.register_forward_hook(self._record_attention))
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

    def _record_attention(self, module: Any, inputs: tuple[Tensor, BatchLayout], output: Tensor) -> None:
        x, layout = inputs
        weights = module.weights(x, layout, self._first_query_only)
        mean = weights.float().mean(dim=1)  # over heads: B x queries x N
        if layout.padding is None or self._first_query_only:
            self._recorded.append(mean.mean(dim=1))
        else:
            queries = (~layout.padding).to(mean).unsqueeze(-1)
            self._recorded.append((mean * queries).sum(dim=1) / queries.sum(dim=1))

    def _record_share(self, module: nn.Module, args: tuple[Tensor, Tensor], output: Tensor) -> None:
        self.share = max_pooling_share(*args)


def max_pooling_share(segments: Tensor, padding_mask: Tensor) -> Tensor:
    """(B, N, C) states and their (B, N) padding mask -> (B, N): share of the channels whose maximum a segment has.

    Of equal maxima the first one counts.
    """
    winner = segments.masked_fill(padding_mask.unsqueeze(-1), float("-inf")).argmax(dim=1)  # B x C
    won = winner.new_zeros(padding_mask.shape).scatter_add(1, winner, torch.ones_like(winner))
    return won / winner.size(1)
