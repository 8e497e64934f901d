from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from drawn import draws
from hypothesis import example, given
from hypothesis import strategies as st

from hat_fairseq.data.long_input import POLICIES, LongInputError, fit_parts, token_limit


def fit(is_bos: list[bool], most: int, policy: str) -> tuple[int, Counter[str]]:
    """How many tokens stay of one document that may have so many, its `</s>` left out, and what that costs."""
    (end,), counts = fit_parts([is_bos], [token_limit([is_bos], most + 1, "the limit")], policy, "choose truncate")
    return end, counts


def markers(*sentence_lengths: int) -> list[bool]:
    """Flags of a document whose sentences have these lengths, markers included."""
    return [position == 0 for length in sentence_lengths for position in range(length)]


def obvious(is_bos: list[bool], most: int, policy: str) -> tuple[int, Counter[str]]:
    """The same in words: of the sentences the whole ones stay, or the first tokens without markers at their end."""
    sentences: list[list[int]] = []
    for position, marker in enumerate(is_bos):
        if marker or not sentences:
            sentences.append([])
        sentences[-1].append(position)
    whole = [sentence for sentence in sentences if sentence[-1] < most]
    if policy == "truncate-sentences" and whole:
        end = whole[-1][-1] + 1
    else:
        end = most
        while end > 1 and is_bos[end - 1]:
            end -= 1
    lost = [sentence for sentence in sentences if sentence[0] >= end]
    is_cut = any(sentence[0] < end <= sentence[-1] for sentence in sentences)
    counts = {"tokens_truncated": len(is_bos) - end, "sentences_truncated": len(lost), "sentences_cut": int(is_cut)}
    return end, +Counter(counts)


@pytest.mark.parametrize("policy", POLICIES[:3])
@draws
@given(st.lists(st.booleans(), max_size=120), st.integers(1, 40))
@example(markers(3, 1, 1, 4), 5)
@example(markers(9, 4), 5)
def test_what_stays_and_what_is_counted(policy: str, is_bos: list[bool], most: int) -> None:
    if len(is_bos) <= most:
        assert fit(is_bos, most, policy) == (len(is_bos), Counter())
    elif policy == "error":
        message = (
            f"^{len(is_bos) + 1} tokens with </s> are more than the limit of {most + 1}; raise the limit, or choose"
        )
        with pytest.raises(LongInputError, match=message):
            fit(is_bos, most, policy)
    else:
        for flags in (is_bos, np.array(is_bos)):
            assert fit(flags, most, policy) == obvious(is_bos, most, policy)


def test_fifty_thousand_tokens_take_milliseconds() -> None:
    for policy in POLICIES[1:3]:
        for is_bos in (markers(50_000), [True] * 50_000, markers(*[10] * 5_000)):
            begin = time.process_time()
            fit(is_bos, 1024, policy)
            assert time.process_time() - begin < 0.5  # about 0.01; quadratic cost would be minutes
