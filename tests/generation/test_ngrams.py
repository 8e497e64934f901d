"""Blocking n-grams by tensors blocks what fairseq blocks in Python."""

from __future__ import annotations

import pytest
import torch
from fairseq.ngram_repeat_block import NGramRepeatBlock

from hat_fairseq.generation.hypotheses import block_repeated_ngrams
from hat_fairseq.register import register

register()  # without it fairseq compares with padding and blocks nothing


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 60])
def test_the_same_tokens_are_blocked(length: int, size: int) -> None:
    generator = torch.Generator().manual_seed(length)
    tokens = torch.randint(4, 7, (6, length), generator=generator)
    log_probs = torch.randn(6, 9, generator=generator)
    expected = NGramRepeatBlock(size, use_extension=False)(tokens, log_probs.clone(), 2, 3, length - 1)
    blocked = log_probs.clone()
    block_repeated_ngrams(blocked, tokens, size)
    assert torch.equal(blocked, expected)
    assert length < 60 or blocked.isinf().any()
