"""Small models of `hierarchical_transformer`, with weights that tell their parts from each other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import build
from torch import Tensor

SMALL = (
    "--encoder-embed-dim 24 --encoder-ffn-embed-dim 40 --encoder-attention-heads 4 --dropout 0 --attention-dropout 0 "
    "--pooler-dropout 0 --segment-length 6 --max-segments 5 --layout "
)
LENGTHS = [23, 30, 1, 6, 7, 11]
POSITIONS = pytest.mark.parametrize("positions", ["add", "none"])
SEGMENTS = pytest.mark.parametrize("segment_by", ["length", "marker"])


def small(layout: str = "S|SD", flags: str = "", seed: int = 0, arch: str = "hierarchical_transformer") -> Any:
    model = build(arch, f"{SMALL}{layout} {flags}", seed=seed)
    for name, parameter in model.named_parameters():  # at 1, 0 and 0.02 too much would look alike
        if "layer_norm" in name or "layernorm" in name:
            torch.nn.init.normal_(parameter, 0.5, 0.5)
        elif parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def with_head(pooling: str, flags: str = "") -> Any:
    model = small(flags=f"--pooling {pooling} {flags}")
    model.register_classification_head("topic", num_classes=3)
    for parameter in model.classification_heads.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def classify(model: Any, tokens: Tensor) -> Tensor:
    return model(tokens, classification_head_name="topic")[0]
