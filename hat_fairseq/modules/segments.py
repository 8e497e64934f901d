"""Segments of a document, attention within segments, and the layers of the Hierarchical Attention Transformer.

Chalkidis et al. 2022, section 3. A document is N segments of at most L tokens, and the first slot of a segment
represents it. Segments have L tokens each, or begin at markers (of sentences, paragraphs or turns); one that is longer
than L continues in another. A segment-wise layer (S) is an encoder layer over the tokens of each segment. A
cross-segment layer (D) is an encoder layer over the first slots of all segments; its outputs replace their states. A
layer pattern such as `S|S|SD` lists the layers; SD is S followed by D. O(T L + N^2) for T = N x L slots.

Legend: B documents, T tokens, N segments of the longest document, L slots of a segment, C channels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import prepare_mask
from ..options import option, unstated
from .attention import AttentionSizes, HeadProjections
from .batch_layout import Arranged, BatchLayout, KeyMask, Representatives, Slots, on_representatives
from .layers import EncoderLayer, LayerSizes, run_layer

LAYERS = ("S", "D", "SD")
SEGMENT_LENGTH = 128  # where nothing else is stated


def slots_of_length(tokens: Tensor, pad: int, length: int) -> Slots:
    """Maps (B, T) ids, padded on the right -> segments of L consecutive positions; padding counts as a position."""
    size = -(-tokens.size(1) // length) * length
    index = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
    return Slots(index.masked_fill(tokens.eq(pad), size), size)


def slots_at_markers(tokens: Tensor, bos: int, pad: int, length: int) -> Slots:
    """Maps (B, T) ids, padded anywhere -> segments that begin at each BOS marker and at a document's first token.

    Padding does not count. One host-device synchronisation.
    """
    real = tokens.ne(pad)
    index = real.cumsum(dim=1) - 1
    first = torch.where(tokens.eq(bos), index, 0).cummax(dim=1).values  # the segment's first token, as an index
    offset = index - first
    begins = real & (offset % length == 0)
    size = max(1, int(begins.sum(dim=1).max())) * length  # a batch of nothing but padding has one empty segment
    slots = (begins.cumsum(dim=1) - 1) * length + offset % length
    return Slots(slots.masked_fill(~real, size), size)


def arrange_segments(
    tokens: Tensor, slots: Slots, length: int, pad: int, attend_padding: bool = False, means: bool = False
) -> Arranged:
    """Lays out (B, T) ids in segments; positions count from 0 in each.

    Padding has row 0 of the position table, as in the released weights, where a segment's padding may be attended to.

    `attend_padding`: padding inside a segment is attended to. `means`: the state of a representative is the mean of its
    segment.
    """
    ids = slots.scatter(tokens, pad)
    padding = ids.eq(pad)
    empty = padding.unflatten(1, (-1, length)).all(dim=2)  # B x N
    masked = empty.repeat_interleave(length, dim=1) if attend_padding else padding
    any_masked, any_empty = torch.stack([masked.any(), empty.any()]).tolist()
    positions = (torch.arange(empty.size(1), device=empty.device) * length).expand_as(empty)
    owners = (torch.arange(slots.size, device=ids.device) // length).masked_fill(padding, -1) if means else None
    layout = BatchLayout(
        padding=masked if any_masked else None,
        representatives=Representatives(positions, empty if any_empty else None, unit="segment", owners=owners),
        slots=slots,
        empty_rows=any_empty,
    )
    rows = torch.arange(slots.size, device=ids.device) % length + pad + 1
    return Arranged(ids, rows.masked_fill(padding, 0), layout)


class SegmentAttention(HeadProjections):
    """Self-attention within consecutive segments of L = `segment_length` tokens; O(T L).

    `window`: a token attends to so many tokens of its segment on either side; None: to its whole segment.
    """

    def __init__(self, sizes: AttentionSizes, segment_length: int = SEGMENT_LENGTH, window: int | None = None) -> None:
        super().__init__(sizes)
        self.segment_length, self.window = segment_length, window

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """Maps (B, T, C) -> (B, T, C); the last segment is shorter where T is no multiple of L."""
        batch, length, channels = x.shape
        mask = layout.key_mask(x, self.segment_length)
        # B x T x C -> (B N) x L x C
        missing, positions = -length % self.segment_length, layout.positions
        rows = F.pad(x, (0, 0, 0, missing)).reshape(-1, self.segment_length, channels)
        if positions is not None:
            positions = F.pad(positions, (0, missing)).reshape(-1, self.segment_length)
        if (window := self.window or length) < self.segment_length - 1:
            keys, key = mask, ("near", x.dtype, self.segment_length, window)
            mask = layout.cached(key, lambda: near(rows, keys, window))
        return self.attend_rows(rows, mask, positions).reshape(batch, -1, channels)[:, :length]


def near(rows: Tensor, mask: KeyMask | None, window: int) -> KeyMask:
    """Narrows the mask of (R, L, C) rows to keys within a window, and a token itself: (R or 1, 1, L, L)."""
    place = torch.arange(rows.size(1), device=rows.device)
    distance = (place[:, None] - place).abs()
    allowed, empty = distance[None, None] <= window, None
    if mask is not None:
        keys = mask.allowed if mask.allowed.dtype is torch.bool else mask.allowed == 0
        allowed, empty = (allowed & keys) | (distance == 0), mask.empty
    return KeyMask(prepare_mask(allowed, rows.dtype), empty)


@dataclass
class SegmentFlags:
    """The flags of `--encoder-attention segments`."""

    segment_length: int | None = unstated(SEGMENT_LENGTH, "segments: the number of tokens of a segment", least=1)
    segment_window: int | None = option(
        None,
        "segments: a token attends to so many tokens of its segment on either side (default: to all), with "
        "local layers of --encoder-family in these alone",
        least=1,
    )


def parse_pattern(pattern: str) -> list[str]:
    """Parses `S|SD` to ["S", "SD"]; ValueError for other layers."""
    layers = pattern.split("|")
    wrong = [layer for layer in layers if layer not in LAYERS]
    if wrong:
        raise ValueError(f"layout {pattern!r}: unknown layer {wrong[0]!r}; write layers S, D or SD with | between them")
    return layers


class SegmentLayer(nn.Module):
    """A segment-wise layer, a cross-segment layer, or the first followed by the second.

    Args:
        segment_attn: attention of the segment-wise layer; None: there is no such layer.
        cross_attn: attention of the cross-segment layer, over the representatives; None: there is no such layer.
    """

    def __init__(self, sizes: LayerSizes, segment_attn: nn.Module | None, cross_attn: nn.Module | None) -> None:
        super().__init__()
        self.segment_wise = None if segment_attn is None else EncoderLayer(sizes, segment_attn)
        self.cross_segment = None if cross_attn is None else EncoderLayer(sizes, cross_attn)

    def forward(self, x: Tensor, layout: BatchLayout, positions: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Maps (B, T, C) -> (B, T, C).

        Args:
            layout: its representatives are the segments' first slots.
            positions: (B, N) rows -> (B, N, C) positions of segments, added before the cross-segment layer; None: none
                are. Row 1 + n is segment n, row 0 a segment of padding. The table belongs to the encoder.
        """
        if self.segment_wise is not None:
            x = self.segment_wise(x, layout)
        return x if self.cross_segment is None else on_representatives(x, layout, self.cross, layout, positions)

    def cross(self, states: Tensor, layout: BatchLayout, positions: Callable[[Tensor], Tensor] | None) -> Tensor:
        """Maps (B, N, C) states of segments -> (B, N, C), by the cross-segment layer."""
        assert self.cross_segment is not None and layout.representatives is not None
        if positions is not None:
            rows = torch.arange(1, states.size(1) + 1, device=states.device).expand(len(states), -1)
            empty = layout.representatives.padding
            states = states + positions(rows if empty is None else rows.masked_fill(empty, 0))
        return self.cross_segment(states, layout.among_representatives)


def reads_segments(layer: nn.Module) -> bool:
    """Returns whether the segment-wise part of a layer, if it has one, reads one segment at a time."""
    inner = getattr(layer, "segment_wise", None)
    return inner is None or isinstance(inner.self_attn, SegmentAttention)


def run_in_groups(
    layers: Sequence[SegmentLayer], x: Tensor, layout: BatchLayout, group: int, *arguments: Any
) -> Tensor:
    """Runs layers as one after the other, and recomputes segment-wise ones in the backward pass, a group at a time.

    A segment-wise layer reads one segment at a time. So all of them from one cross-segment layer to the next may run on
    some segments, then on others: between them only the (B, T, C) input of the first is kept, and the backward pass has
    the activations of one group. Each is computed twice, as with `run_layer`.

    Args:
        group: tokens of each document that are recomputed together, whole segments.
        arguments: further ones of the cross-segment layers.
    """
    stack: list[nn.Module] = []
    for layer in layers:
        if layer.segment_wise is not None:
            stack.append(layer.segment_wise)
        if layer.cross_segment is not None:
            x, stack = _in_groups(stack, x, layout, group), []
            x = run_layer(on_representatives, x, layout, layer.cross, layout, *arguments, checkpoint=True)
    return _in_groups(stack, x, layout, group)


def _in_groups(stack: list[nn.Module], x: Tensor, layout: BatchLayout, group: int) -> Tensor:
    if not stack:
        return x
    parts, begin = [], 0
    for part in x.split(group, dim=1):
        parts.append(run_layer(_run_all, part, layout.part(begin, begin + part.size(1)), stack, checkpoint=True))
        begin += part.size(1)
    return torch.cat(parts, dim=1)


def _run_all(x: Tensor, layout: BatchLayout, stack: list[nn.Module]) -> Tensor:
    for layer in stack:
        x = layer(x, layout)
    return x
