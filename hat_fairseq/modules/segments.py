"""Division of a row of tokens into a grid of segments, and back.

Chalkidis et al. 2022, section 3: a document is N segments of at most L tokens, and the first token of a segment
represents it. Segments have L tokens each, or begin at markers (of sentences, paragraphs or turns); one that is longer
than L continues in another. A row may have any length. Linear in the number of tokens; building a grid is one
host-device synchronisation.

Legend: B documents, T tokens, N segments of the longest document, L slots of a segment, C channels.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SegmentGrid:
    """The positions (slots) of the tokens of a batch in its segments.

    Attributes:
        slots: (B, T) slot of each token, from 0; N x L for padding, which has no slot.
        num_segments: N.
        segment_length: L.
        has_padding: whether a slot has no token.
        has_empty: whether a segment has no token.
    """

    slots: Tensor
    num_segments: int
    segment_length: int
    has_padding: bool
    has_empty: bool

    def scatter(self, tokens: Tensor, pad: int) -> Tensor:
        """(B, T) token ids -> (B, N, L), `pad` in every other slot."""
        size = self.num_segments * self.segment_length
        grid = tokens.new_full((len(tokens), size + 1), pad).scatter(1, self.slots, tokens)[:, :size]
        return grid.unflatten(1, (self.num_segments, self.segment_length))

    def gather(self, x: Tensor) -> Tensor:
        """(B, N L, C) states -> (B, T, C), zeros for padding."""
        outside = (self.slots == x.size(1)).unsqueeze(-1)
        index = self.slots.unsqueeze(-1).masked_fill(outside, 0).expand(-1, -1, x.size(-1))
        return x.gather(1, index).masked_fill(outside, 0)


def segments_of_length(tokens: Tensor, pad: int, segment_length: int) -> SegmentGrid:
    """Segments of L consecutive positions each; padding counts as a position.

    Args:
        tokens: (B, T) token ids, padded on the right; T may be any length.
    """
    batch, length = tokens.shape
    num_segments = -(-length // segment_length)
    size = num_segments * segment_length
    slots = torch.arange(length, device=tokens.device).expand_as(tokens).masked_fill(tokens.eq(pad), size)
    filled = slots.new_zeros(batch, size + 1, dtype=torch.bool).scatter(1, slots, True)[:, :size]
    in_segments = filled.unflatten(1, (num_segments, segment_length)).any(dim=2)
    full, no_empty = torch.stack([filled.all(), in_segments.all()]).tolist()
    return SegmentGrid(slots, num_segments, segment_length, not full, not no_empty)


def segments_at_markers(tokens: Tensor, bos: int, pad: int, segment_length: int) -> SegmentGrid:
    """Segments that begin at every BOS marker and at a document's first token.

    Args:
        tokens: (B, T) token ids; padding may be anywhere and does not count.
    """
    real = tokens.ne(pad)
    index = real.cumsum(dim=1) - 1
    first = torch.where(tokens.eq(bos), index, 0).cummax(dim=1).values  # the segment's first token, as an index
    offset = index - first
    heads = real & (offset % segment_length == 0)
    counts = heads.sum(dim=1)
    most, fewest, fewest_tokens = torch.stack([counts.max(), counts.min(), real.sum(dim=1).min()]).tolist()
    num_segments = max(1, most)  # a batch of nothing but padding has one empty segment
    size = num_segments * segment_length
    slots = (heads.cumsum(dim=1) - 1) * segment_length + offset % segment_length
    return SegmentGrid(
        slots.masked_fill(~real, size), num_segments, segment_length, fewest_tokens < size, fewest < num_segments
    )
