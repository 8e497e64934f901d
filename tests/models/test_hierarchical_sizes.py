"""`hierarchical_transformer`: parameter counts of the released models, and layouts of any shape."""

from __future__ import annotations

import pytest
import references
import torch
from building import PAD, Vocabulary, build, documents
from helpers import assert_close
from hierarchical import LENGTHS, small

MINI = {  # the paper's variants of the mini model, each of 12 blocks
    "I1": "SD|SD|SD|SD|SD|SD",
    "I2": "S|SD|D|S|SD|D|S|SD|D",
    "I3": "S|SD|S|SD|S|SD|S|SD",
    "LC1": "S|S|S|S|S|S|SD|SD|SD",
    "EC2": "S|S|SD|SD|SD|S|S|S|S",
}


def count(arch: str, flags: str = "", size: int = 50265) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in build(arch, flags, Vocabulary(size, mask=True)).parameters())


def test_the_base_model_has_as_many_parameters_as_the_released_one() -> None:
    base = count("hierarchical_transformer_base_4096")
    assert base == 152_779_353
    assert base - count("hierarchical_transformer_base_4096", "--segment-positions none") == 33 * 768
    # the ad hoc model: another layout of 16 blocks, no other number
    assert count("hierarchical_transformer_base_4096", "--layout S|S|S|S|S|S|S|S|S|S|S|SD|D|D|D") == base


@pytest.mark.parametrize("name", MINI)
def test_mini_models(name: str) -> None:
    block = 4 * (256 * 256 + 256) + 2 * 256 * 1024 + 1024 + 256 + 4 * 256
    tables = (30_522 + 130 + 1 + 9) * 256
    head = 256 * 256 + 256 + 2 * 256 + 30_522
    parameters = count("hierarchical_transformer_mini_1024", f"--layout {MINI[name]}", size=30_522)
    assert parameters == 12 * block + tables + 2 * 256 + head
    assert name != "I3" or count("hierarchical_transformer_mini_1024", size=30_522) == parameters


@torch.no_grad()
@pytest.mark.parametrize("layout", ["D|S", "D|D|S|SD|S", "SD|SD|D|S|S|S|SD", *MINI.values()])
def test_any_layout_computes_its_definition(layout: str) -> None:
    model, tokens = small(layout, "--max-segments 9").eval(), documents(LENGTHS)
    rows = [references.hierarchical_transformer(model.encoder, row[row.ne(PAD)].split(6)) for row in tokens]
    expected = torch.cat([states for row in rows for states in row])
    assert_close(model(tokens, features_only=True)[0][tokens.ne(PAD)], expected)
