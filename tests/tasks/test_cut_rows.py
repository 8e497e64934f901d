"""Cutting rows: the shortest cut, at the end of the right part, whatever a model's limit is."""

from __future__ import annotations

import pytest
import torch
from building import BOS, EOS
from fairseq.data import Dictionary

from hat_fairseq.tasks.cut_rows import CutRows, cut_rows, truncated_part
from hat_fairseq.tasks.raw_documents import indexed

IDS = Dictionary()


def row(*parts: int) -> torch.Tensor:
    """Parts of so many words, a marker in front of every fourth; separated and ended as in the data."""
    tokens: list[int] = []
    for number, words in enumerate(parts):
        tokens += [EOS, EOS] if number else []
        tokens += [BOS if i % 4 == 0 else 10 + i for i in range(words)]
    return torch.tensor([*tokens, EOS])


def cut(*args, rows: list[torch.Tensor]) -> tuple[list[torch.Tensor], dict[str, int]]:
    """The rows afterwards, and what it cost."""
    removed, cost = cut_rows(indexed(rows), *args)
    after = CutRows(indexed(rows), removed)
    assert after.sizes.tolist() == [len(after[i]) for i in range(len(rows))]
    return list(after), cost


@pytest.mark.parametrize(("part", "expected"), [("first", (0, 5)), ("last", (7, 16)), ("longest", (7, 16))])
def test_which_part_gives_way(part: str, expected: tuple[int, int]) -> None:
    piece = truncated_part(row(5, 9), part, EOS)
    assert (piece.start, piece.stop) == expected
    alone = truncated_part(row(5), part, EOS)
    assert (alone.start, alone.stop) == (0, 5)


@pytest.mark.parametrize("limit", [4, 5, 11, 17, 18])
@pytest.mark.parametrize("part", ["first", "last", "longest"])
def test_a_row_loses_as_little_as_possible(limit: int, part: str) -> None:
    tokens = row(3, 12) if part != "first" else row(12, 3)
    (kept,), cost = cut(1, lambda t: len(t) <= max(limit, 7), "truncate", part, IDS, "train", rows=[tokens])
    assert cost["tokens_truncated"] == len(tokens) - len(kept)
    assert len(kept) == min(len(tokens), max(limit, 7))
    assert int(kept.eq(EOS).sum()) == 3 and kept[-1] == EOS


def test_a_limit_of_markers_is_found_as_well() -> None:
    tokens = row(40)
    fits = lambda t: int(t.eq(BOS).sum()) <= 3  # noqa: E731
    (kept,), cost = cut(1, fits, "truncate", "longest", IDS, "train", rows=[tokens])
    assert len(kept) == 3 * 4 + 1
    assert cost == {"rows_over_limit": 1, "tokens_truncated": 28, "sentences_truncated": 7}


def test_fifty_thousand_tokens_in_one_sentence() -> None:
    tokens = torch.cat([torch.tensor([BOS]), torch.full((50_000,), 9), torch.tensor([EOS])])
    looked_at = []
    fits = lambda t: not looked_at.append(len(t)) and len(t) <= 512  # noqa: E731
    (first, second), cost = cut(512, fits, "truncate", "longest", IDS, "a", rows=[row(3), tokens])
    assert first.equal(row(3)) and len(second) == 512 and len(looked_at) < 25 and cost["rows_over_limit"] == 1
    with pytest.raises(ValueError, match="row 2 of a: 50002 tokens are more than the model takes; build a larger one"):
        cut(512, lambda t: False, "error", "longest", IDS, "a", rows=[row(3), tokens])


def test_an_empty_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="row 2 of valid is empty"):
        cut(512, lambda t: True, "error", "longest", IDS, "valid", rows=[row(3), torch.tensor([EOS])])
