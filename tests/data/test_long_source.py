from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest
from drawn import draws
from hypothesis import given
from hypothesis import strategies as st

from hat_fairseq.data.long_input import POLICIES, LongInputError, fit_parts, token_limit


def fit(is_bos: list[bool], most: int, policy: str) -> tuple[list[slice], Counter[str]]:
    """What is kept of one document of at most so many tokens, its `</s>` left out, and what that costs."""
    limit, advice = token_limit([is_bos], most + 1, "the limit"), "choose truncate or truncate-sentences"
    (end,), counts = fit_parts([is_bos], [limit], policy, advice)
    return [slice(0, end)], counts


def markers(*sentence_lengths: int) -> list[bool]:
    """Flags of a document whose sentences have these lengths, markers included."""
    return [position == 0 for length in sentence_lengths for position in range(length)]


def test_a_document_within_the_limit_is_left_alone() -> None:
    for policy in POLICIES[:3]:
        assert fit(markers(3, 4), 7, policy) == ([slice(0, 7)], Counter())
        assert fit([], 7, policy) == ([slice(0, 0)], Counter())


def test_truncate_cuts_the_last_sentence() -> None:
    assert fit(markers(3, 4, 2), 5, "truncate") == (
        [slice(0, 5)],
        Counter(tokens_truncated=4, sentences_truncated=1, sentences_cut=1),
    )


def test_truncate_drops_markers_left_without_a_token() -> None:
    for trailing in [1, 2]:
        kept, counts = fit(markers(3, *[1] * trailing, 4), 3 + trailing, "truncate")
        assert kept == [slice(0, 3)]
        assert counts == Counter(tokens_truncated=trailing + 4, sentences_truncated=trailing + 1)


def test_truncate_sentences_keeps_whole_sentences() -> None:
    assert fit(markers(3, 4, 2), 8, "truncate-sentences") == (
        [slice(0, 7)],
        Counter(tokens_truncated=2, sentences_truncated=1),
    )


def test_truncate_sentences_cuts_the_first_sentence_if_it_must() -> None:
    kept, counts = fit(markers(9, 4), 5, "truncate-sentences")
    assert kept == [slice(0, 5)]
    assert counts["sentences_cut"] == 1 and counts["sentences_truncated"] == 1


def test_error_states_the_lengths_and_the_way_out() -> None:
    with pytest.raises(LongInputError, match="10 tokens with </s> .* the limit of 6.*truncate-sentences"):
        fit(markers(3, 4, 2), 5, "error")


@pytest.mark.parametrize("policy", POLICIES[1:3])
@draws
@given(st.lists(st.booleans(), min_size=1, max_size=120), st.integers(1, 40))
def test_properties_on_drawn_documents(policy: str, is_bos: list[bool], limit: int) -> None:
    (kept,), counts = fit(is_bos, limit, policy)
    assert kept.start == 0 < kept.stop <= limit
    assert kept.stop + counts["tokens_truncated"] == len(is_bos)
    if policy == "truncate" and kept.stop > 1 and counts:
        assert not is_bos[kept.stop - 1]
    assert fit(np.array(is_bos), limit, policy) == ([kept], counts)


def test_fifty_thousand_tokens_take_milliseconds() -> None:
    for policy in POLICIES[1:3]:
        for is_bos in (markers(50_000), [True] * 50_000, markers(*[10] * 5_000)):
            begin = time.process_time()
            fit(is_bos, 1024, policy)
            assert time.process_time() - begin < 0.5  # about 0.01; quadratic cost would be minutes
