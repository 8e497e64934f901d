"""Checkpoints and exports of earlier versions load, give the outputs they gave, and resume with the losses they had."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import old_checkpoints
import pytest
import torch
from commands import USER_DIR
from warm import WarmPython

from hat_fairseq import cli
from hat_fairseq.fairseq_fixes.checkpoints import allow_checkpoint_types

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = sorted(FIXTURES.glob("v?.?"))
CHECKPOINTS = pytest.mark.parametrize("name", old_checkpoints.CHECKPOINTS)


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda folder: folder.name)
def fixtures(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def expected(fixtures: Path) -> dict[str, Any]:
    return torch.load(fixtures / "expected.pt", weights_only=True)


@pytest.fixture(scope="module")
def data(warm: WarmPython, fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A data directory of each kind, made by the `hat preprocess` of today."""
    folder = tmp_path_factory.mktemp("data")
    return {
        kind: folder / old_checkpoints.preprocess(warm, kind, fixtures / "raw", folder) for kind in old_checkpoints.DATA
    }


def data_of(name: str, data: dict[str, Path]) -> Path:
    return data[old_checkpoints.CHECKPOINTS[name][0]]


@CHECKPOINTS
def test_outputs_are_the_recorded_ones(fixtures: Path, expected: dict[str, Any], data: dict[str, Path], name: str):
    """In fp64 to 1e-6, whatever the order of the operations; in fp32 to 1e-5."""
    _, model = old_checkpoints.load(fixtures / f"{name}.pt", data_of(name, data))
    inputs, outputs = expected[name]["inputs"], expected[name]["outputs"]
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-6)):
        actual = old_checkpoints.outputs(model, inputs, dtype)
        torch.testing.assert_close(actual, outputs, atol=tolerance, rtol=tolerance)


@CHECKPOINTS
def test_every_weight_arrives(fixtures: Path, data: dict[str, Path], name: str) -> None:
    path = fixtures / f"{name}.pt"
    weights, (_, model) = torch.load(path, weights_only=True)["model"], old_checkpoints.load(path, data_of(name, data))
    loaded = model.state_dict()
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[key], weight) for key, weight in weights.items())


@CHECKPOINTS
def test_resuming_gives_the_recorded_losses(
    warm: WarmPython, fixtures: Path, expected: dict[str, Any], data: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """The optimizer's state, the place in the epoch and the random numbers of dropout are part of a checkpoint."""
    (tmp_path / "checkpoints" / name).mkdir(parents=True)
    shutil.copy(fixtures / f"{name}.pt", tmp_path / "checkpoints" / name / "checkpoint_last.pt")
    resumed = old_checkpoints.RESUMED
    losses = old_checkpoints.train(warm, name, data_of(name, data), tmp_path, str(USER_DIR), resumed)
    assert losses == pytest.approx(expected[name]["losses"], abs=2e-3)  # logs are rounded to three digits


def test_hat_import_reads_an_export_of_0_4(tmp_path: Path) -> None:
    with tarfile.open(FIXTURES / "v0.4_export.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    allow_checkpoint_types()
    words = ["import", "hat_fairseq", str(tmp_path / "v0.4_export"), "--out", str(tmp_path / "model.pt")]
    assert cli.main(words) == 0
    paths = FIXTURES / "v0.3/hat_transformer_roles.pt", tmp_path / "model.pt"
    before, after = (torch.load(path, weights_only=True)["model"] for path in paths)
    assert before.keys() == after.keys() and all(torch.equal(tensor, after[name]) for name, tensor in before.items())
