"""Caches equal lists of tokens under whatever a search does to its hypotheses, and copy as little as they say."""

from __future__ import annotations

import random

import pytest
import torch

from hat_fairseq.modules.beam_cache_mask import INTERVAL
from hat_fairseq.modules.cache import DecoderCache

HEADS, CHANNELS = 2, 3


class Search:
    """A cache of two layers beside what it stands for: for every hypothesis the list of its tokens, each a number."""

    def __init__(self, documents: int, beam: int) -> None:
        self.cache = DecoderCache(documents * beam, documents, 2, torch.device("cpu"))
        self.rows: list[list[int]] = [[] for _ in range(documents * beam)]
        self.count = 0

    def step(self, new: int = 1) -> None:
        numbers = torch.arange(self.count, self.count + len(self.rows) * new).view(len(self.rows), new)
        self.count += numbers.numel()
        self.cache.append_slots(new)
        beam_mask = self.cache.beam_mask
        # (R, n) -> (D, H, K n, E), every entry the number of its token
        keys = numbers.float().view(beam_mask.documents, 1, -1, 1).expand(-1, HEADS, -1, CHANNELS)
        for index, layer in enumerate(self.cache.layers):
            stored, values = layer.self_attn.append(keys + index, -keys)
            assert torch.equal(values, index - stored)
            self.check(stored - index, numbers)
        for row, added in zip(self.rows, numbers.tolist(), strict=True):
            row.extend(added)

    def check(self, keys: torch.Tensor, numbers: torch.Tensor) -> None:
        """Every new token may attend to its ancestors, itself and the new ones before it, and to nothing else."""
        beam_mask, (rows, new) = self.cache.beam_mask, numbers.shape
        allowed = beam_mask.allowed
        if allowed is None:
            allowed = torch.ones(beam_mask.documents, 1, beam_mask.beam * new, keys.size(2), dtype=torch.bool)
        allowed = allowed.squeeze(1).unflatten(1, (beam_mask.beam, new))
        for row in range(rows):
            document, hypothesis = divmod(row, beam_mask.beam)
            for i in range(new):
                seen = keys[document, 0, :, 0][allowed[document, hypothesis, i]].int().tolist()
                assert sorted(seen) == sorted(self.rows[row] + numbers[row, : i + 1].tolist())

    def reorder(self, order: list[int]) -> None:
        beam = self.cache.beam_mask.beam
        rows = torch.tensor(order).view(-1, beam)
        documents = rows[:, 0] // beam
        stay = documents.tolist() == list(range(self.cache.beam_mask.documents))
        self.cache.reorder(None if stay else documents, rows % beam)
        self.rows = [list(self.rows[row]) for row in order]


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_a_search_sees_its_own_tokens_and_no_others(beam: int) -> None:
    choose = random.Random(beam)
    search = Search(4, beam)
    search.step(3)  # a prefix
    for step in range(6 * INTERVAL):
        beam_mask = search.cache.beam_mask
        documents = list(range(beam_mask.documents))
        if step % 30 == 29:
            documents.remove(choose.choice(documents))
        search.reorder([document * beam + choose.randrange(beam) for document in documents for _ in range(beam)])
        search.step(2 if step % 40 == 39 else 1)
    assert search.cache.beam_mask.documents < 4


def test_any_order_of_documents_of_one_hypothesis() -> None:
    """What fairseq's own generator asks for, to which every hypothesis is a document."""
    choose = random.Random(0)
    search = Search(6, 1)
    for _ in range(40):
        search.step()
        search.reorder([choose.randrange(len(search.rows)) for _ in range(choose.randint(1, 7))])


def test_dead_slots_are_dropped() -> None:
    """Hypotheses with most of their past in common need about one slot for each token, not one for each of the beam."""
    search, beam = Search(2, 4), 4
    for _ in range(20 * INTERVAL):
        search.step()
        search.reorder([0, 0, 1, 0, 5, 5, 4, 5])
    length = search.cache.beam_mask.length
    assert length == 20 * INTERVAL
    assert search.cache.beam_mask.slots <= length + 2 * INTERVAL * beam


def test_hypotheses_that_share_nothing_keep_everything() -> None:
    search = Search(2, 3)
    for _ in range(5 * INTERVAL):
        search.step()
        search.reorder([2, 0, 1, 3, 5, 4])
    assert search.cache.beam_mask.slots == 3 * search.cache.beam_mask.length


def test_reordering_within_documents_moves_no_key() -> None:
    search = Search(3, 2)
    for _ in range(3):
        search.step()
        layer = search.cache.layers[0]
        before = layer.self_attn._keys.data_ptr()
        search.reorder([1, 1, 3, 2, 4, 5])
        assert layer.self_attn._keys.data_ptr() == before


def test_growth_copies_linearly_often() -> None:
    search, buffers = Search(1, 1), set()
    for _ in range(1000):
        search.cache.append_slots(1)
        keys, _ = search.cache.layers[0].self_attn.append(torch.zeros(1, 1, 1, 1), torch.zeros(1, 1, 1, 1))
        buffers.add(keys.data_ptr())
    assert len(buffers) <= 8  # doubling


def test_rows_that_documents_cannot_share_are_refused() -> None:
    with pytest.raises(ValueError, match="5 rows of queries are not a multiple of 2 rows of keys"):
        DecoderCache(5, 2, 1, torch.device("cpu"))
