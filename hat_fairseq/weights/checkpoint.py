"""Converted weights as a checkpoint of fairseq, with the dict.txt that belongs to them.

The file holds tensors, numbers and strings only, so `torch.load(weights_only=True)` reads it. It holds no training
options: `hat import` prints the flags that build the same architecture.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.files import atomic_file

ARCHITECTURE = "architecture"  # the key of the settings that our converters know; fairseq does not read it


def checkpoint(model: dict[str, Tensor], architecture: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The least that fairseq's trainer reads beside the weights: update 0 of epoch 1 and no optimizer state."""
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}
    state = {
        "args": None,
        "cfg": None,
        "model": model,
        "optimizer_history": [history],
        "last_optimizer_state": None,
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
    return state if architecture is None else state | {ARCHITECTURE: dict(architecture)}


def refuse_existing(out: Path, symbols: list[str] | None) -> None:
    """ValueError where a file exists that `write_files` would write."""
    for path in [out] if symbols is None else [out, out.parent / "dict.txt"]:
        if path.exists():
            raise ValueError(f"{path} exists; give another --out or --overwrite")


def write_files(
    out: Path, model: dict[str, Tensor], symbols: list[str] | None, architecture: Mapping[str, Any] | None = None
) -> None:
    """Write a model as a checkpoint of fairseq, and beside it dict.txt where its entries are known."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(checkpoint(model, architecture), file)
    print(f"wrote {out}: {sum(t.numel() for t in set(model.values()) if t.numel() > 1):,} parameters")
    if symbols is None:
        print("no vocab.json and merges.txt in the folder: no dict.txt written")
        return
    path = out.parent / "dict.txt"
    with atomic_file(path) as file:
        file.write("".join(f"{s} 1\n" for s in symbols).encode())
    print(f"wrote {path}: {len(symbols)} entries, for fairseq-preprocess --srcdict and --tgtdict")
