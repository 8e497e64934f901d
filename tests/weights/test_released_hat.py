"""`hat import kiddothe2b`: names and settings of the released models, both ways, and what is refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import torch
from building import Vocabulary, build
from released_hat_sample import (
    CONFIG,
    DATA,
    NAMES,
    REAL,
    TOKENS,
    imported,
    largest_difference,
    model_for,
    release,
    state,
)

from hat_fairseq import cli
from hat_fairseq.weights.released_hat import HEAD, PREFIX, from_hugging_face, to_hugging_face

POOLINGS = {"SequenceClassification[pooling=attentive]": "attentive"}


def test_the_base_model_has_the_tensors_of_the_released_one() -> None:
    """273 names; 191,513,266 numbers, the second copy of the token table and the positions' numbers included."""
    with torch.device("meta"):
        base = build("hierarchical_transformer_base_4096", "", Vocabulary(50265, mask=True))
        released = to_hugging_face(base.state_dict(), 32, 128)
    blocks, crossing = 16, 4
    assert len(released) == 6 + 16 * blocks + crossing + 7 == 273
    assert sum(tensor.numel() for tensor in released.values()) == 191_513_266
    assert released[PREFIX + "encoder.layer.11.position_embeddings.weight"].shape == (33, 768)
    assert PREFIX + "encoder.layer.10.position_embeddings.weight" not in released


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back_is_the_same_state(name: str) -> None:
    model = imported(name, POOLINGS.get(name, "max"))
    back = to_hugging_face(model.state_dict(), 4, 8, pooled=name != "SequentialSentenceClassification")
    theirs = state(name)
    assert back.keys() == theirs.keys()
    assert [key for key in back if not torch.equal(back[key], theirs[key])] == []


def test_without_positions_of_ours_they_get_zeros() -> None:
    model = imported("MaskedLM", flags=" --segment-positions none", segment_positions=False)
    back = to_hugging_face(model.state_dict(), 4, 8)
    tables = [key for key in back if ".layer." in key and "position_embeddings" in key]
    assert len(tables) == 3 and all(back[key].shape == (5, 32) and not back[key].any() for key in tables)
    assert back.keys() == state("MaskedLM").keys()


def test_unknown_tensors_and_unequal_copies_are_refused() -> None:
    theirs = state("MaskedLM")
    with pytest.raises(ValueError, match="unknown tensor bert.pooler.weight .3."):
        from_hugging_face(theirs | {"bert.pooler.weight": torch.zeros(3)})
    with pytest.raises(ValueError, match="lm_head.decoder.weight: differs from the other copies"):
        from_hugging_face(theirs | {"lm_head.decoder.weight": torch.zeros(97, 32)})
    with pytest.raises(ValueError, match="unknown tensor decoder.x .1."):
        to_hugging_face(imported("MaskedLM").state_dict() | {"decoder.x": torch.zeros(1)}, 4, 8)


def import_release(folder: Path, out: Path, *flags: str) -> int:
    return cli.main(["import", "kiddothe2b", str(folder), "--out", str(out), *flags])


@torch.no_grad()
@pytest.mark.parametrize("positions", ["add", "none"])
def test_a_released_folder_becomes_a_checkpoint_and_the_printed_flags_build_it(
    positions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = release(tmp_path / "hf"), tmp_path / "out/model.pt"
    assert import_release(folder, out, "--segment-positions", positions) == 0
    flags = re.search(r"^  --arch hierarchical_transformer (.*) --finetune-from-model", capsys.readouterr().out, re.M)
    assert flags is not None
    model = build("hierarchical_transformer", " ".join(shlex.split(flags[1])), Vocabulary(97, mask=True)).eval()
    model.load_state_dict(torch.load(out, weights_only=True)["model"])
    difference = largest_difference(model(TOKENS)[0][REAL], DATA["MaskedLM/logits"][REAL])
    assert difference < 1e-5 if positions == "add" else difference > 0.01
    assert import_release(folder, out) == 2 and "exists" in capsys.readouterr().err


@torch.no_grad()
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("SequenceClassification[pooling=attentive]", "--task document_classification --pooling attentive"),
        ("MultipleChoice", "--task multiple_choice --pooling max"),
        ("SequentialSentenceClassification", "--task segment_classification"),
    ],
)
def test_the_head_comes_along_and_its_task_is_said(
    name: str, flags: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "model.pt"
    assert import_release(release(tmp_path / "hf", name), out, "--segment-positions", "add") == 0
    printed = capsys.readouterr().out
    assert f"its head is loaded by {flags}\n" in printed
    quirks = "--pool-padded-segments --attend-segment-padding"
    assert f"to compute what the authors' code computes: {quirks}\n" in printed
    built = re.search(r"^  --arch hierarchical_transformer (.*) --finetune-from-model", printed, re.M)
    pooling = re.search(r"--pooling \w+", flags)
    assert built is not None
    words = " ".join([*shlex.split(built[1]), pooling[0] if pooling else ""])
    model, converted = model_for(state(name), words), from_hugging_face(state(name), True)
    model.load_state_dict(torch.load(out, weights_only=True)["model"])
    head = {key: t for key, t in model.state_dict().items() if HEAD in key and not key.endswith("_fingerprint")}
    assert head.keys() == {key for key in converted if HEAD in key}
    assert all(torch.equal(tensor, converted[key]) for key, tensor in head.items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pad_token_id": 0}, "pad_token_id is 0, only 1 can be converted"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"layer_norm_eps": None}, "no number for layer_norm_eps"),
        ({"encoder_layout": None}, "no encoder_layout"),
        ({"vocab_size": 98}, "embedding [98, 32]; the weights have 4 and [97, 32]"),
        ({"encoder_layout": {"0": CONFIG["encoder_layout"]["0"]}}, "1 layers"),
    ],
    ids=str,
)
def test_a_folder_that_is_something_else_is_refused(
    changes: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = release(tmp_path / "hf", **changes)
    assert import_release(folder, tmp_path / "model.pt") == 2
    assert message in capsys.readouterr().err and not (tmp_path / "model.pt").exists()
