import itertools
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from drawn import draws
from hypothesis import example, given
from hypothesis import strategies as st

from hat_fairseq.data.long_input import (
    LongInputError,
    Piece,
    cut_windows,
    fit_parts,
    pack_rows,
    pack_segments,
    token_limit,
)
from hat_fairseq.data.options import POLICIES


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


@pytest.mark.parametrize("is_bos", [markers(50_000), [True] * 50_000, markers(*[10] * 5_000)])
@pytest.mark.parametrize("policy", POLICIES[1:3])
def test_fifty_thousand_tokens_take_milliseconds(is_bos: list[bool], policy: str) -> None:
    begin = time.process_time()
    fit(is_bos, 1024, policy)
    assert time.process_time() - begin < 0.5  # about 0.01; quadratic cost would be minutes


LENGTHS = st.lists(st.lists(st.sampled_from((1, 2, 3, 9, 30)), min_size=1, max_size=6), min_size=1, max_size=12)
DOCUMENTS = LENGTHS.map(
    lambda rows: [[[f"{d}.{u}.{t}" for t in range(n)] for u, n in enumerate(row)] for d, row in enumerate(rows)]
)


def test_segments_are_packed() -> None:
    assert pack_segments([[1, 2], [], [3], [4, 5, 6], [7]], 3) == [[1, 2, 3], [4, 5, 6], [7]]
    assert pack_segments([[1], [2, 3, 4, 5, 6], [7], [8]], 3) == [[1], [2, 3, 4], [5, 6, 7], [8]]
    assert pack_segments([], 3) == pack_segments([[]], 3) == []


def obvious_rows(documents: list[list[list[str]]], size: int, markers: bool) -> list[list[str]]:
    """The same in words: pieces one after the other, a new row where one does not fit."""
    rows: list[list[str]] = [[]]
    for document in documents:
        for number, unit in enumerate(document):
            pieces = [unit[i : i + size - 1] for i in range(0, len(unit), size - 1)] if len(unit) >= size else [unit]
            for piece in pieces:
                end = ["</s>"] if number == 0 and piece is pieces[0] else []
                if rows[-1]:
                    marked = end + ["<s>"] * (markers or bool(end)) + piece
                    if len(pieces) == 1 and len(rows[-1] + marked) <= size:
                        rows[-1] += marked
                        continue
                    rows.append([])
                rows[-1] += ["<s>", *piece]
    return [row for row in rows if row]


@draws
@given(DOCUMENTS, st.sampled_from((2, 3, 10, 31, 32, 1000)), st.booleans())
def test_rows_of_pre_training_lose_nothing_and_split_no_sentence(documents: list, size: int, markers: bool) -> None:
    counts: Counter[str] = Counter()
    rows = list(pack_rows(documents, size, markers, counts))
    assert rows == obvious_rows(documents, size, markers)
    assert [t for row in rows for t in row if t[0] != "<"] == [t for units in documents for unit in units for t in unit]
    assert all(len(row) <= size and row[0] == "<s>" and row[-1] not in ("<s>", "</s>") for row in rows)
    assert counts["segments_longer_than_row"] == sum(len(unit) >= size for units in documents for unit in units)
    for row in rows:
        for token in row[1:]:
            if token.endswith(".0.0"):  # a document begins
                assert row[row.index(token) - 2 : row.index(token)] == ["</s>", "<s>"] or row.index(token) == 1
    (one,) = pack_rows(documents, None, markers, counts)
    assert one.count("</s>") == len(documents) - 1


@draws
@given(DOCUMENTS, st.integers(1, 5))
def test_rows_have_at_most_so_many_segments(documents: list, most: int) -> None:
    rows = list(pack_rows(documents, 20, True, Counter(), most))
    assert [t for row in rows for t in row if t[0] != "<"] == [t for units in documents for unit in units for t in unit]
    for row, following in itertools.pairwise(rows):
        segments, first = row.count("<s>"), " ".join(following).split("<s>")[1].split()
        assert segments <= most
        # Nothing more would have fitted. (+ 2: a </s> where a document ends, and the marker.)
        assert segments == most or len(row) + len(first) + 2 > 20


def tokens_of_window(window: list[Piece]) -> list[tuple[int, int]]:
    return [(piece.segment, index) for piece in window for index in range(piece.begin, piece.end)]


@draws
@given(st.lists(st.sampled_from((1, 2, 5, 13, 40)), min_size=1, max_size=30), st.integers(2, 50), st.integers(0))
def test_drawn_lengths(lengths: list[int], size: int, overlap: int) -> None:
    overlap %= size - 1
    windows = cut_windows(lengths, size, overlap)
    covered = [tokens_of_window(window) for window in windows]
    everything = [(segment, index) for segment, length in enumerate(lengths) for index in range(length)]
    assert sorted(set(sum(covered, []))) == everything
    for window, tokens in zip(windows, covered, strict=True):
        assert 0 < len(tokens) + len(window) <= size
        begin = everything.index(tokens[0])
        assert tokens == everything[begin : begin + len(tokens)]  # nothing is left out in the middle
        if len(window) > 1:
            assert all(piece.begin == 0 and piece.end == lengths[piece.segment] for piece in window)
    for (before, after), pieces in zip(pairwise(covered), windows, strict=False):
        whole = all(piece.end - piece.begin == lengths[piece.segment] for piece in pieces)
        assert before[0] < after[0]
        assert before[-1] < after[-1]  # each goes on
        shared = [token for token in after if token in before]
        markers = len({segment for segment, _ in shared}) if whole else 0
        assert len(shared) + markers <= overlap
        if whole:  # the next segment would not have fitted: a window is not cut short
            following = after[len(shared)][0]
            assert len(before) + len(pieces) + 1 + lengths[following] > size


def test_windows_of_examples() -> None:
    # [a b] [c d d d]: the window with segment 2 begins with segment 1, which has 2 tokens with its marker.
    windows = cut_windows([1, 1, 3], size=6, overlap=2)
    assert windows == [[Piece(0, 0, 1), Piece(1, 0, 1)], [Piece(1, 0, 1), Piece(2, 0, 3)]]
    assert cut_windows([1, 1, 3], size=6, overlap=1)[1] == [Piece(2, 0, 3)]
    assert cut_windows([7], size=4, overlap=1) == [[Piece(0, 0, 3)], [Piece(0, 2, 5)], [Piece(0, 4, 7)]]
    assert cut_windows([], size=4, overlap=1) == []
