"""SAMSum, AMI and ICSI start from the HAT of CNN/DailyMail: what is new then, and what is taken over."""

from __future__ import annotations

import logging

import pytest
import torch
from building import TINY, Vocabulary, build

SEGMENTS, POSITIONS = "encoder.embed_segments.weight", "encoder.embed_positions.weight"


def test_only_segments_and_further_positions_are_new(caplog: pytest.LogCaptureFixture) -> None:
    """As the recipes do it: the hierarchy comes along; roles and positions beyond the first model's are random."""
    news = build("hat_bart_base", TINY, seed=7, max_source_positions=16).state_dict()
    meetings = build("hat_bart_base", TINY, Vocabulary(roles=3), max_source_positions=64)
    fresh = {name: tensor.clone() for name, tensor in meetings.state_dict().items()}
    assert SEGMENTS in fresh and SEGMENTS not in news
    with caplog.at_level(logging.INFO):
        meetings.load_state_dict(dict(news))
    for name, tensor in meetings.state_dict().items():
        if name == SEGMENTS:
            assert torch.equal(tensor, fresh[name])
        elif name == POSITIONS:
            assert torch.equal(tensor, torch.cat([news[name], fresh[name][len(news[name]) :]]))
        elif not name.endswith("_fingerprint"):  # the segments' is new too
            assert torch.equal(tensor, news[name]), name
    assert f"newly initialised 1 tensors:\n  {SEGMENTS}" in caplog.text
    assert f"{POSITIONS}: extended from 18 to 66 rows (random)" in caplog.text
