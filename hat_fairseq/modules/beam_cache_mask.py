"""Which cached tokens each hypothesis of a beam search descends from.

The keys and values of every generated token lie in one slot of their document and never move: when hypotheses are
reordered, what is permuted is a small table, one bit for each hypothesis and slot. Attention of a beam of k reads the
slots of its document under this table as a mask. Slots from which no living hypothesis descends any more are given up
from time to time: hypotheses have most of their past in common, so about as many slots as tokens remain, not k times
as many.

Legend: D documents, K beam, R = D x K rows, L slots, n new tokens of each hypothesis.
"""

from __future__ import annotations

import torch
from torch import Tensor

INTERVAL = 16  # steps between two looks at what can be given up; the look itself waits for the device


class BeamCacheMask:
    """The table, for `documents` documents of `beam` hypotheses each."""

    def __init__(self, documents: int, beam: int, device: torch.device) -> None:
        self.beam = beam
        self.length = 0  # tokens of every hypothesis
        self.descends = torch.zeros(documents, beam, 0, dtype=torch.bool, device=device)  # (D, K, L)
        self.allowed: Tensor | None = None  # what the new tokens may attend to; see `append_slots`
        self._look_at = INTERVAL * beam

    @property
    def documents(self) -> int:
        return self.descends.size(0)

    @property
    def slots(self) -> int:
        return self.descends.size(2)

    def append_slots(self, new: int) -> None:
        """Adds a slot for each of `new` tokens of every hypothesis, hypothesis by hypothesis.

        Sets `allowed`: (D, 1, K x new, L) bool, True = may attend, for queries in the same order; None where every
        query sees every slot. A token sees its ancestors, itself and the new tokens before it.
        """
        beam, device = self.beam, self.descends.device
        own = torch.eye(beam, dtype=torch.bool, device=device)
        past = self.descends
        self.descends = torch.cat([past, own.repeat_interleave(new, 1).expand(self.documents, -1, -1)], dim=2)
        self.length += new
        if beam == 1 and new == 1:
            self.allowed = None
            return
        earlier = torch.ones(new, new, dtype=torch.bool, device=device).tril()
        among_new = torch.kron(own.int(), earlier.int()).bool()
        before = past.repeat_interleave(new, 1)
        self.allowed = torch.cat([before, among_new.expand(self.documents, -1, -1)], dim=2).unsqueeze(1)

    def reorder(self, documents: Tensor | None, parents: Tensor) -> None:
        """Hypothesis k of document d goes on from hypothesis `parents[d, k]` of the old document `documents[d]`.

        Args:
            documents: (D',) old documents, None if all stay where they are.
            parents: (D', K) hypotheses.
        """
        table = self.descends if documents is None else self.descends.index_select(0, documents)
        self.descends = table.gather(1, parents.unsqueeze(-1).expand(-1, -1, table.size(2)))

    def drop_dead_slots(self) -> Tensor | None:
        """Drops slots without descendants, now and then.

        Returns:
            (D, L') the old slots that are kept, the living ones first and in order (a document with fewer than L' of
            them keeps dead ones too); None if everything stays.
        """
        if self.beam == 1 or self.slots < self._look_at:
            return None
        living = self.descends.any(dim=1)  # (D, L)
        most = int(living.sum(dim=1).max())
        self._look_at = self.slots + INTERVAL * self.beam
        if most > 0.9 * self.slots:
            return None
        kept = living.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :most]
        self.descends = self.descends.gather(2, kept.unsqueeze(1).expand(-1, self.beam, -1))
        self._look_at = most + INTERVAL * self.beam
        return kept
