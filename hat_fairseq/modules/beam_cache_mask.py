"""Mask over the cached tokens of a beam search: each hypothesis attends to the tokens that it descends from.

The keys and values of every generated token are in one slot of their document and never move. A table has one bit for
each hypothesis and slot. Reordering hypotheses permutes this table; attention reads all slots of a document with the
table as mask. Every 16 steps, slots that no hypothesis uses are dropped. Hypotheses share most of their tokens, so
about one slot for each position remains, not K.

Legend: D documents, K beam, R = D x K rows, L slots, n new tokens of each hypothesis.
"""

import torch
from torch import Tensor

from ..kernels import prepare_mask

INTERVAL = 16  # steps between two searches for unused slots; a search is a host-device synchronisation


class BeamCacheMask:
    """The table of `documents` documents with `beam` hypotheses each.

    Attributes:
        length: tokens of every hypothesis.
        descends: (D, K, L) True = the hypothesis descends from the token in the slot.
        allowed: mask of the newest tokens, see `append_slots`.
    """

    def __init__(self, documents: int, beam: int, device: torch.device) -> None:
        self.beam = beam
        self.length = 0
        self.descends = torch.zeros(documents, beam, 0, dtype=torch.bool, device=device)
        self.allowed: Tensor | None = None
        self._next_search = INTERVAL * beam  # in slots

    @property
    def documents(self) -> int:
        return self.descends.size(0)

    @property
    def slots(self) -> int:
        return self.descends.size(2)

    def append_slots(self, new: int, dtype: torch.dtype = torch.float32) -> None:
        """Adds a slot for each of `new` tokens of every hypothesis, hypothesis by hypothesis.

        Sets `allowed`: (D, 1, K x new, L) mask for `kernels.attend` with queries of `dtype`, in the order of the slots;
        None where every query attends to every slot. A token attends to its ancestors, itself and the new tokens before
        it.
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
        allowed = torch.cat([before, among_new.expand(self.documents, -1, -1)], dim=2).unsqueeze(1)
        self.allowed = prepare_mask(allowed, dtype)

    def reorder(self, documents: Tensor | None, parents: Tensor) -> None:
        """Hypothesis k of document d continues hypothesis `parents[d, k]` of the old document `documents[d]`.

        Args:
            documents: (D',) old documents; None: all stay where they are.
            parents: (D', K) hypotheses, 0..K-1.
        """
        table = self.descends if documents is None else self.descends.index_select(0, documents)
        self.descends = table.gather(1, parents.unsqueeze(-1).expand(-1, -1, table.size(2)))

    def drop_dead_slots(self) -> Tensor | None:
        """Drops unused slots, if there are many and `INTERVAL` steps have passed since the last search.

        Returns:
            (D, L') the old slots that are kept, the used ones first and in order; a document with fewer than L' used
            slots also keeps unused ones. None if all slots stay.
        """
        if self.beam == 1 or self.slots < self._next_search:
            return None
        used = self.descends.any(dim=1)  # (D, L)
        most = int(used.sum(dim=1).max())
        self._next_search = self.slots + INTERVAL * self.beam
        if most > 0.9 * self.slots:
            return None
        kept = used.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :most]
        self.descends = self.descends.gather(2, kept.unsqueeze(1).expand(-1, self.beam, -1))
        self._next_search = most + INTERVAL * self.beam
        return kept
