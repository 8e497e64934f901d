"""The search needs torch only; candidates and blocked n-grams are those of fairseq's search."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from building import Vocabulary
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import BeamSearch

from hat_fairseq.generation.search import best_continuations, block_repeated_ngrams
from hat_fairseq.register import register

register()  # without it fairseq compares with padding and blocks nothing


@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("size", [5, 65, 3263])
def test_the_same_candidates(size: int, beam: int, step: int) -> None:
    generator = torch.Generator().manual_seed(size)
    log_probs = torch.randn(3, 1, size, generator=generator).log_softmax(-1).expand(-1, beam, -1).contiguous()
    if step:
        log_probs = torch.randn(3, beam, size, generator=generator).log_softmax(-1)
    scores = torch.randn(3, beam, step, generator=generator)
    expected = BeamSearch(Vocabulary().source_dictionary).step(step, log_probs, scores)
    candidates = best_continuations(log_probs, scores[:, :, -1] if step else None)
    assert [row.tolist() for row in candidates] == [row.tolist() for row in expected]


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 60])
def test_the_same_ngrams_are_blocked(length: int, size: int) -> None:
    generator = torch.Generator().manual_seed(length)
    tokens = torch.randint(4, 7, (6, length), generator=generator)
    log_probs = torch.randn(6, 9, generator=generator)
    expected = NGramRepeatBlock(size, use_extension=False)(tokens, log_probs.clone(), 2, 3, length - 1)
    blocked = log_probs.clone()
    block_repeated_ngrams(blocked, tokens, size)
    assert torch.equal(blocked, expected)
    assert length < 60 or blocked.isinf().any()


def test_the_search_needs_torch_only() -> None:
    code = "import sys, hat_fairseq.generation.search; sys.exit('fairseq' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
