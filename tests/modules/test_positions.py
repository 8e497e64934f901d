"""Positions equal fairseq's; tables grow as the papers say."""

import pytest
import torch
from fairseq.modules import LearnedPositionalEmbedding, SinusoidalPositionalEmbedding
from helpers import assert_close

from hat_fairseq.modules.embedding import (
    EmbeddingSizes,
    Embeds,
    LearnedPositions,
    SinusoidalPositions,
    extend_positions,
    position_rows,
    token_table,
)

PAD = 1
TOKENS = torch.tensor([[5, 6, 7, 8], [5, 6, 1, 1], [1, 1, 1, 9], [1, 1, 1, 1]])


def test_learned_positions_equal_fairseq() -> None:
    positions = LearnedPositions(10, 6, PAD)
    reference = LearnedPositionalEmbedding(10 + PAD + 1, 6, PAD)
    reference.load_state_dict(positions.state_dict())
    assert_close(positions(position_rows(TOKENS, PAD)), reference(TOKENS))


@pytest.mark.parametrize("dim", [6, 7, 64])
def test_sinusoidal_positions_equal_fairseq(dim: int) -> None:
    positions, reference = SinusoidalPositions(40, dim, PAD), SinusoidalPositionalEmbedding(dim, PAD, 42)
    assert_close(positions(position_rows(TOKENS, PAD)), reference(TOKENS))
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_too_many_tokens_are_an_error() -> None:
    embedding = type("Embedding", (Embeds, torch.nn.Module), {})()
    embedding.build_embedding(token_table(10, 6, PAD), EmbeddingSizes(3, positions_flag="--flag"))
    embedding.check_positions(position_rows(TOKENS[1:3], PAD))  # padding needs no position
    with pytest.raises(ValueError, match="only 3 positions: raise --flag in training, or shorten"):
        embedding.check_positions(position_rows(TOKENS, PAD))


def table(positions: int, value: float = 0.0) -> torch.Tensor:
    rows = torch.arange(positions + 2.0)[:, None] + value
    return rows.expand(-1, 3).clone()


def extended(*args: object, **kwargs: object) -> list[float]:
    return extend_positions(*args, **kwargs)[:, 0].tolist()  # type: ignore[arg-type]


def test_strategies() -> None:
    pretrained, fresh = table(4), table(9, value=100)
    known = [0.0, 1, 2, 3, 4, 5]
    assert extended(pretrained, fresh, "random") == known + [106.0, 107, 108, 109, 110]
    assert extended(pretrained, fresh, "random", random_from=1) == known[:3] + [103.0 + i for i in range(8)]
    assert extended(pretrained, fresh, "tile") == known + [2.0, 3, 4, 5, 2]
    assert extended(pretrained, fresh, "repeat-last") == known + [5.0] * 5


@pytest.mark.parametrize(("strategy", "random_from"), [("tile", 2), ("random", 5)])
def test_impossible_extensions_are_refused(strategy: str, random_from: int) -> None:
    with pytest.raises(ValueError, match=f"random positions from {random_from}: only with strategy random"):
        extend_positions(table(4), table(9), strategy, random_from=random_from)
