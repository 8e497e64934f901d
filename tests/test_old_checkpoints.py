"""Checkpoints of earlier versions load, give the outputs they gave, and resume with the losses they had."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import USER_DIR
from fairseq import checkpoint_utils
from warm import WarmPython

from hat_fairseq import hf, networks
from hat_fairseq.former import VERSION, todays, todays_name, todays_of_checkpoint
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.register import register

register()

DATA = {
    "documents": "--bpe learned --num-codes 60 --roles --max-source-tokens 41 --max-target-tokens 21 "
    "--long-source truncate --long-target truncate",
    "classification": "--bpe learned --num-codes 60 --kind classification",
    "mlm": "--bpe learned --num-codes 60 --max-source-tokens 41 --kind mlm",
}
SIZES = "--encoder-embed-dim 16 --encoder-ffn-embed-dim 24 --encoder-attention-heads 2"
DECODER = "--decoder-embed-dim 16 --decoder-ffn-embed-dim 24 --decoder-attention-heads 2 --decoder-layers 1"
TO_TEXT = (
    f"--task document_to_text --criterion chunked_label_smoothed_cross_entropy --label-smoothing 0.1 {DECODER} "
    "--max-source-positions 41 --max-target-positions 21"
)
# Name: kind of data, flags of fairseq-train.
CHECKPOINTS = {
    "hat_bart": ("documents", f"--arch hat_bart_base --encoder-layers 2 {TO_TEXT}"),
    "hat_transformer_roles": (
        "documents",
        f"--arch hat_transformer_tiny --encoder-layers 1 --role-stream role {TO_TEXT}",
    ),
    "hat_roberta": (
        "classification",
        "--arch hat_roberta_base --encoder-layers 2 --task document_classification --criterion document_labels "
        "--max-positions 99",
    ),
    "hierarchical_transformer": (
        "mlm",
        "--arch hierarchical_transformer_base_4096 --task masked_document_lm --criterion masked_lm "
        "--sample-break-mode eos --tokens-per-sample 41 --layout S|SD --segment-length 8 --max-segments 6",
    ),
}
COMMON = (
    f"{SIZES} --dropout 0.1 --attention-dropout 0.1 --optimizer adam --lr 3e-2 --lr-scheduler polynomial_decay "
    "--warmup-updates 2 --total-num-update 10 --clip-norm 1.0 --batch-size 2 --seed 3 --cpu --num-workers 0 "
    "--no-epoch-checkpoints --disable-validation --log-format json --log-interval 1"
)
RESUMED = 6  # updates; they stopped after 4, and an epoch has five


FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = sorted(FIXTURES.glob("v?.?"))
NAMES = pytest.mark.parametrize("name", CHECKPOINTS)


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda folder: folder.name)
def fixtures(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def expected(fixtures: Path) -> dict[str, Any]:
    return torch.load(fixtures / "expected.pt", weights_only=True)


@pytest.fixture(scope="module")
def data(warm: WarmPython, fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each network its data directory, made by the `hat preprocess` of today."""
    folder = tmp_path_factory.mktemp("data")
    for kind, flags in DATA.items():
        words = f"hat_fairseq.cli preprocess {fixtures}/raw/{kind} --out {kind} {flags}".split()
        warm.run(words, folder, folder / "log")
    return {name: folder / kind / "bin" for name, (kind, _) in CHECKPOINTS.items()}


@NAMES
def test_weights_and_outputs_are_the_recorded_ones(fixtures: Path, expected: dict, data: dict, name: str) -> None:
    """Loaded as by fairseq's commands. In fp64 to 1e-6, whatever the order of the operations; in fp32 to 1e-5."""
    path = str(fixtures / f"{name}.pt")
    (model,), *_ = checkpoint_utils.load_model_ensemble_and_task([path], arg_overrides={"data": str(data[name])})
    weights, loaded = torch.load(path, weights_only=True)["model"], model.eval().state_dict()
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[key], weight) for key, weight in weights.items())
    inputs = {"roles" if key == "segments" else key: value for key, value in expected[name]["inputs"].items()}
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-6)):
        with torch.no_grad():
            logits = model.to(dtype)(**inputs)[0].float()
        torch.testing.assert_close(logits, expected[name]["outputs"], atol=tolerance, rtol=tolerance)


@NAMES
def test_resuming_gives_the_recorded_losses(
    warm: WarmPython, fixtures: Path, expected: dict[str, Any], data: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """The optimizer's state, the place in the epoch and the random numbers of dropout are part of a checkpoint."""
    (tmp_path / "checkpoints").mkdir()
    shutil.copy(fixtures / f"{name}.pt", tmp_path / "checkpoints/checkpoint_last.pt")
    flags = f"--user-dir {USER_DIR} --max-update {RESUMED} {COMMON} {CHECKPOINTS[name][1]}"
    log = warm.run(["fairseq_cli.train", str(data[name]), *flags.split()], tmp_path, tmp_path / "log")
    losses = [float(json.loads(line)["loss"]) for line in re.findall(r"train_inner \| (\{.*?\})", log)]
    assert losses == pytest.approx(expected[name]["losses"], abs=2e-3)  # logs are rounded to three digits


def test_settings_of_0_7_have_their_names_of_today() -> None:
    """In folders and in checkpoints; of hat_evidence, which is hat_units with a head of evidence."""
    former = {"evidence_layout": "N", "evidence_dim": 8, "pooling_cells": None, "dropout": 0.2}
    own = {"unit_dropout": 0.1, "unit_layout": "N", "unit_dim": 8, "dropout": 0.2}
    assert todays("hat_evidence", former) == own
    assert todays_name("hat_evidence_tiny") == "hat_units_tiny"
    assert todays("hat_roberta", {"dropout": 0.2, "pooling_cells": "token"}) == {"dropout": 0.2}
    pooling = {"encoder_attention": "pooling"}
    assert todays_of_checkpoint("hat_bart", pooling | {"pooling_cells": "token"}).keys() == {*pooling, VERSION}
    assert todays_of_checkpoint("hat_bart", pooling | {VERSION: 1}) == pooling | {VERSION: 1}
    for cells in ({}, {"pooling_cells": "document"}, {"pooling_cells": None}):
        with pytest.raises(ValueError, match=r"pooled keys begin at multiples .* runs with hat_fairseq 0\.5\.0"):
            todays_of_checkpoint("hat_bart", pooling | cells)


def test_a_folder_of_hat_evidence_loads(tmp_path: Path) -> None:
    heads = {"found": {"level": "evidence", "classes": 1, "inner_dim": None}}
    sizes = {"encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_layers": 1, "encoder_attention_heads": 4}
    config = hf.HatConfig("hat_units", sizes | {"unit_dim": 8, "unit_dropout": 0.1}, vocab_size=60, heads=heads)
    hf.HatForSegmentClassification(config).save_pretrained(tmp_path)
    record = json.loads((tmp_path / "config.json").read_text())
    settings = {
        name.replace("unit_", "evidence_"): value
        for name, value in record["settings"].items()
        if name not in ("unit_vectors", "no_words")
    }
    record |= {"network": "hat_evidence", "settings": settings | {"pooling_cells": None}}
    (tmp_path / "config.json").write_text(json.dumps(record))
    loaded = hf.HatForSegmentClassification.from_pretrained(tmp_path)
    assert loaded.config.network == "hat_units"
    assert loaded.config.settings == config.settings
    description = ModelFolder.open(tmp_path).description
    assert description is not None
    assert description["network"] == "hat_units"
    networks.build(description)
