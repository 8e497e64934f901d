"""fairseq-train: settings that cannot work are refused before the first update, and a diverged run says where."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import hat_fairseq  # noqa: F401  applies the corrections


def last_line(result: Any) -> str:
    assert result.returncode == 1
    return result.stderr.strip().splitlines()[-1]


@pytest.mark.fault("Training", "NaN or infinity", "names update and samples, exit 1")
def test_a_diverged_run_names_update_and_samples(train, tmp_path: Path) -> None:
    early = ["--max-update", 2, "--disable-validation", "--save-interval-updates", 1]
    train(tmp_path, *early)
    late = ["--lr", 1e30, "--reset-lr-scheduler", "--max-update", 9, "--batch-size", 3, "--reset-dataloader"]
    result = train(tmp_path, *early, *late, check=False)
    line = last_line(result)
    update = re.search(r"FloatingPointError: update (\d): [^;]*; sample ids \d, \d, \d; ", line)
    assert update and int(update[1]) > 2, line


@pytest.mark.fault("Checkpoints", "resumed with another --encoder-attention-heads or --activation-fn", "refused, named")
def test_weights_are_not_restored_into_another_function(train, tmp_path: Path) -> None:
    """The architecture says 4 heads and leaves the activation to the default, relu."""
    train(tmp_path, "--max-update", 1, "--disable-validation")
    for flag, value, before in (("--encoder-attention-heads", 8, 4), ("--activation-fn", "gelu", "relu")):
        result = train(tmp_path, "--max-update", 2, "--disable-validation", flag, value, check=False)
        assert f"checkpoint_last.pt: trained with {flag} {before}, and this run has {value}" in last_line(result)


@pytest.mark.fault(
    "Checkpoints", "pooling attention of an older version, resumed without --pooling-cells", "refused, named"
)
def test_older_pooling_cells_are_not_resumed_as_others(train, tmp_path: Path) -> None:
    flags = ["--encoder-attention", "pooling", "--max-source-positions", 128, "--disable-validation", "--max-update"]
    train(tmp_path, *flags, 1, "--pooling-cells", "document")
    path = tmp_path / "checkpoint_last.pt"
    state = torch.load(path, weights_only=True)
    del state["cfg"]["model"].pooling_cells
    torch.save(state, path)
    result = train(tmp_path, *flags, 2, check=False)
    assert "trained with --pooling-cells document, and this run has token" in last_line(result)
    train(tmp_path, *flags, 2, "--pooling-cells", "document")
