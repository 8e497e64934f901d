"""A folder that `hat export` of version 0.4 wrote: `hat import` reads it, and transformers runs it by itself."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hat_fairseq import cli
from hat_fairseq.fairseq_fixes.checkpoints import allow_checkpoint_types

pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")

FIXTURES = Path(__file__).parents[1] / "fixtures"
CHECKPOINT = FIXTURES / "v0.3/hat_transformer_roles.pt"
RUN = """
import importlib.util, json, sys, torch
sys.path.remove(sys.argv[2])
assert importlib.util.find_spec("hat_fairseq") is None
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained(sys.argv[1], trust_remote_code=True).double()
net = torch.load(sys.argv[3], weights_only=True)["hat_transformer_roles"]["inputs"]
names = {"input_ids": "src_tokens", "role_ids": "segments", "decoder_input_ids": "prev_output_tokens"}
logits = model(**{name: net[other] for name, other in names.items()}).logits
texts = tokenizer.batch_decode(model.generate(**tokenizer([json.loads(sys.argv[4])], return_tensors="pt")))
torch.save({"logits": logits.detach(), "texts": texts}, sys.argv[5])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder, with the code that version 0.4 put into it."""
    with tarfile.open(FIXTURES / "v0.4_export.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "v0.4_export"


def test_hat_import_reads_it(folder: Path, tmp_path: Path) -> None:
    allow_checkpoint_types()
    assert cli.main(["import", "hat_fairseq", str(folder), "--out", str(tmp_path / "model.pt")]) == 0
    before, after = (torch.load(path, weights_only=True)["model"] for path in (CHECKPOINT, tmp_path / "model.pt"))
    assert before.keys() == after.keys() and all(torch.equal(tensor, after[name]) for name, tensor in before.items())


@pytest.mark.slow
def test_transformers_runs_it_by_itself(folder: Path, without_fairseq: Callable[..., str], tmp_path: Path) -> None:
    """Without this package; the logits are those that version 0.3 recorded."""
    turns = [{"role": "PM", "text": "Good morning ."}, {"role": "UI", "text": "Mm - hmm ."}]
    repository, recorded = FIXTURES.parents[1], FIXTURES / "v0.3/expected.pt"
    without_fairseq(RUN, folder, repository, recorded, json.dumps(turns), tmp_path / "results.pt")
    results = torch.load(tmp_path / "results.pt", weights_only=True)
    expected = torch.load(recorded, weights_only=True)["hat_transformer_roles"]["outputs"]
    torch.testing.assert_close(results["logits"].float(), expected, atol=1e-6, rtol=1e-6)
    assert len(results["texts"]) == 1 and results["texts"][0]
