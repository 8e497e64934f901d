"""A decoder's caches equal lists of tokens under whatever a search does to its hypotheses."""

from __future__ import annotations

import random

import pytest
import torch

from hat_fairseq.modules.cache import DecoderCache


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_hypotheses_keep_their_own_tokens_and_the_memory_of_their_document(beam: int) -> None:
    """Every entry of a key is the number of its token, or of its document; the values are their negatives."""
    choose, cache, count = random.Random(beam), DecoderCache(2), 0
    rows, documents = [[] for _ in range(4 * beam)], list(range(4))
    for layer in cache.layers:
        static = torch.tensor(documents).view(4, 1, 1, 1).float()
        layer.encoder_attn.keys, layer.encoder_attn.values = static, -static
    for step in range(60):
        new = 3 if step % 40 == 0 else 1  # a prefix, and several at once
        numbers = torch.arange(count, count + len(rows) * new).view(len(rows), 1, new, 1)
        count += numbers.numel()
        rows = [row + added for row, added in zip(rows, numbers.flatten(1).tolist(), strict=True)]
        for index, layer in enumerate(cache.layers):
            keys, values = layer.self_attn.append(numbers + index, -numbers)
            assert (keys - index).flatten(1).tolist() == (-values).flatten(1).tolist() == rows
            assert layer.encoder_attn.keys.flatten().tolist() == documents
            assert layer.sentence_attn.keys is None
        assert cache.length == len(rows[0])
        places = list(range(len(documents)))
        if step % 30 == 29:
            places.remove(choose.choice(places))
        order = [place * beam + choose.randrange(beam) for place in places for _ in range(beam)]
        stay = len(places) == len(documents)
        cache.reorder(torch.tensor(order), None if stay else torch.tensor(places))
        rows, documents = [rows[row] for row in order], [documents[place] for place in places]
    assert len(documents) == 2
