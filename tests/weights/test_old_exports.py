"""A folder that `hat export` of version 0.4 wrote: `hat import` reads it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import torch

from hat_fairseq import cli
from hat_fairseq.fairseq_fixes.checkpoints import allow_checkpoint_types

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_hat_import_reads_it(tmp_path: Path) -> None:
    with tarfile.open(FIXTURES / "v0.4_export.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    allow_checkpoint_types()
    words = ["import", "hat_fairseq", str(tmp_path / "v0.4_export"), "--out", str(tmp_path / "model.pt")]
    assert cli.main(words) == 0
    paths = FIXTURES / "v0.3/hat_transformer_roles.pt", tmp_path / "model.pt"
    before, after = (torch.load(path, weights_only=True)["model"] for path in paths)
    assert before.keys() == after.keys() and all(torch.equal(tensor, after[name]) for name, tensor in before.items())
