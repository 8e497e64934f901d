"""The best continuations are those that fairseq's search finds."""

from __future__ import annotations

import pytest
import torch
from building import Vocabulary
from fairseq.search import BeamSearch

from hat_fairseq.generation.hypotheses import BLOCK, best_continuations, best_of_rows

SIZES = [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 7 * BLOCK, 9 * BLOCK + 17, 50 * BLOCK + 63]


@pytest.mark.parametrize("number", [1, 2, 8])
@pytest.mark.parametrize("size", SIZES)
def test_best_of_rows_is_topk(size: int, number: int) -> None:
    x = torch.randperm(5 * size, generator=torch.Generator().manual_seed(size)).view(5, size).float()
    number = min(number, size)
    values, places = best_of_rows(x, number)
    expected = x.topk(number, dim=1)
    assert torch.equal(values, expected[0]) and torch.equal(places, expected[1])
    x[:, : size // 2] = float("-inf")
    assert torch.equal(best_of_rows(x, number)[0], x.topk(number, dim=1)[0])


@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("size", [5, BLOCK + 1, 50 * BLOCK + 63])
def test_the_same_candidates_as_fairseq(size: int, beam: int, step: int) -> None:
    generator = torch.Generator().manual_seed(size)
    log_probs = torch.randn(3, 1, size, generator=generator).log_softmax(-1).expand(-1, beam, -1).contiguous()
    if step:
        log_probs = torch.randn(3, beam, size, generator=generator).log_softmax(-1)
    scores = torch.randn(3, beam, step, generator=generator)
    expected = BeamSearch(Vocabulary().source_dictionary).step(step, log_probs, scores)
    found = best_continuations(log_probs, scores[:, :, -1] if step else None)
    assert [row.tolist() for row in found] == [row.tolist() for row in expected]
