"""BERT's initialisation: every matrix and table N(0, 0.02), biases and padding rows zero."""

from __future__ import annotations

from torch import nn


def bert_init(model: nn.Module) -> None:
    """Initialises all linear layers and tables of `model`. Runs on the meta device too."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])
