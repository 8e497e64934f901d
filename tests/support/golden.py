"""Golden losses: a file for each distinct network in `tests/golden/`; `HAT_GOLDEN=1 make test` writes them anew.

A change is a change of the model or of its initialisation.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
import torch
from commands import REPOSITORY
from torch import Tensor, nn

FOLDER = REPOSITORY / "tests/golden"
STEPS = (0, 4, 9)  # the losses that are kept


def check_losses(name: str, model: nn.Module, loss: Callable[[], Tensor]) -> None:
    """Ten steps of Adam in fp32 on a CPU; compares their losses with those of the file."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(max(STEPS) + 1):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    chosen, path = [losses[step] for step in STEPS], FOLDER / f"{name}.json"
    if os.environ.get("HAT_GOLDEN"):
        path.write_text(json.dumps([round(value, 4) for value in chosen]) + "\n", encoding="utf-8")
    assert chosen == pytest.approx(json.loads(path.read_text(encoding="utf-8")), abs=2e-3)
