"""From a row of tokens to a grid of segments and back.

Chalkidis et al. 2022, section 3: a document is N segments of at most L tokens, and the first token of a segment stands
for it. Segments are the next L tokens each, or begin at markers of the user's own (sentences, paragraphs, turns); a
segment longer than L continues in another one. No token is lost, and the length need not be a multiple of L. Linear in
the number of tokens; the one number that leaves the device is the largest segment count of the batch.

Legend: B documents, T tokens, N segments of the longest document, L slots of a segment, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SegmentGrid:
    """Where the tokens of a batch stand in its segments."""

    slots: Tensor  # (B, T) place of each token among the N x L slots; N x L, none, for padding
    num_segments: int  # N
    segment_length: int  # L

    def scatter(self, tokens: Tensor, pad: int) -> Tensor:
        """(B, T) token ids -> (B, N, L), `pad` in every other slot."""
        size = self.num_segments * self.segment_length
        grid = tokens.new_full((len(tokens), size + 1), pad).scatter(1, self.slots, tokens)[:, :size]
        return grid.unflatten(1, (self.num_segments, self.segment_length))

    def gather(self, x: Tensor) -> Tensor:
        """(B, N, L, C) states -> (B, T, C), zeros for padding."""
        size = self.num_segments * self.segment_length
        outside = (self.slots == size).unsqueeze(-1)
        index = self.slots.unsqueeze(-1).masked_fill(outside, 0).expand(-1, -1, x.size(-1))
        return x.flatten(1, 2).gather(1, index).masked_fill(outside, 0)


def segments_of_length(tokens: Tensor, pad: int, segment_length: int) -> SegmentGrid:
    """Segments of L tokens as they stand, padding between them included.

    Args:
        tokens: (B, T) token ids, padded on the right; T may be any length.
    """
    slots = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
    num_segments = -(-tokens.size(1) // segment_length)
    return SegmentGrid(slots.masked_fill(tokens.eq(pad), num_segments * segment_length), num_segments, segment_length)


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
    segment = heads.cumsum(dim=1) - 1
    num_segments = max(1, int(segment.max()) + 1)  # a batch of nothing but padding has one empty segment
    slots = segment * segment_length + offset % segment_length
    return SegmentGrid(slots.masked_fill(~real, num_segments * segment_length), num_segments, segment_length)
