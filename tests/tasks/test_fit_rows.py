"""Cutting rows: the shortest cut, at the end of the right part, whatever a model's limit is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from building import BOS, EOS

from hat_fairseq.tasks.fit_rows import cost, fit_rows, truncated_part, without


def row(*parts: int) -> torch.Tensor:
    """Parts of so many words, a marker in front of every fourth; separated and ended as in the data."""
    tokens: list[int] = []
    for number, words in enumerate(parts):
        tokens += [EOS, EOS] if number else []
        tokens += [BOS if i % 4 == 0 else 10 + i for i in range(words)]
    return torch.tensor([*tokens, EOS])


def rows(*tensors: torch.Tensor) -> list[torch.Tensor]:
    class Rows(list):
        sizes = np.array([len(tensor) for tensor in tensors])

    return Rows(tensors)


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
    removed = fit_rows(rows(tokens), 1, lambda t: len(t) <= max(limit, 7), "truncate", part, EOS, "train")
    kept = without(tokens, removed[0]) if removed else tokens
    assert len(kept) == min(len(tokens), max(limit, 7))
    assert int(kept.eq(EOS).sum()) == 3 and kept[-1] == EOS


def test_a_limit_of_markers_is_found_as_well() -> None:
    tokens = row(40)
    removed = fit_rows(rows(tokens), 1, lambda t: int(t.eq(BOS).sum()) <= 3, "truncate", "longest", EOS, "train")
    assert len(without(tokens, removed[0])) == 3 * 4 + 1
    assert cost(rows(tokens), removed, BOS) == {"rows_over_limit": 1, "tokens_truncated": 28, "sentences_truncated": 7}


def test_fifty_thousand_tokens_in_one_sentence() -> None:
    tokens = torch.cat([torch.tensor([BOS]), torch.full((50_000,), 9), torch.tensor([EOS])])
    looked_at = []
    removed = fit_rows(
        rows(row(3), tokens),
        512,
        lambda t: not looked_at.append(len(t)) and len(t) <= 512,
        "truncate",
        "longest",
        EOS,
        "a",
    )
    assert list(removed) == [1] and len(without(tokens, removed[1])) == 512 and len(looked_at) < 25
    with pytest.raises(ValueError, match="row 2 of a: 50002 tokens are more than the model takes; build a larger one"):
        fit_rows(rows(row(3), tokens), 512, lambda t: False, "error", "longest", EOS, "a")


def test_an_empty_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="row 2 of valid is empty"):
        fit_rows(rows(row(3), torch.tensor([EOS])), 512, lambda t: True, "error", "longest", EOS, "valid")
