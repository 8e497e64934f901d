"""The numbers that the public code of Chalkidis et al. 2022 computes from its own weights, for every head; and back."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from building import PAD, Vocabulary, build
from commands import REPOSITORY
from torch import Tensor

from hat_fairseq import cli
from hat_fairseq.convert_chalkidis import HEAD, from_hugging_face, to_hugging_face

DATA = {
    name: torch.from_numpy(array)
    for name, array in np.load(REPOSITORY / "tests/samples/chalkidis_hat_tiny.npz").items()
}
TOKENS = DATA["input_ids"]
REAL = TOKENS.ne(PAD)
FLAGS = (
    "--layout S|SD|D|SD --segment-length 8 --max-segments 4 --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 "
    "--encoder-attention-heads 4 --layer-norm-eps 1e-12 --pool-padded-segments --pooling "
)
HEADS = {
    "SequenceClassification[pooling=max]": "max",
    "SequenceClassification[pooling=attentive]": "attentive",
    "SequentialSentenceClassification": "each",
}


def state(name: str) -> dict[str, Tensor]:
    prefix = f"{name}/state/"
    return {key.removeprefix(prefix): tensor for key, tensor in DATA.items() if key.startswith(prefix)}


def imported(name: str, pooling: str = "max", flags: str = "", segment_positions: bool = True) -> Any:
    model = build("hierarchical_transformer", FLAGS + pooling + flags, Vocabulary(97, mask=True)).eval()
    theirs = state(name)
    if "classifier.weight" in theirs:
        model.register_classification_head(HEAD, num_classes=len(theirs["classifier.weight"]))
    converted = from_hugging_face(theirs, segment_positions)
    assert converted.keys() | {"encoder.dictionary_fingerprint"} == model.state_dict().keys()
    model.load_state_dict(converted)
    return model


def largest_difference(ours: Tensor, theirs: Tensor) -> float:
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max())


@torch.no_grad()
def test_states_and_masked_lm() -> None:
    model = imported("MaskedLM")
    hidden, logits = DATA["MaskedLM/last_hidden_state"], DATA["MaskedLM/logits"]
    assert largest_difference(model(TOKENS)[0][REAL], logits[REAL]) < 1e-5
    assert largest_difference(model(TOKENS, features_only=True)[0][REAL], hidden[REAL]) < 1e-5
    ids = model.encoder.segment(TOKENS).scatter(TOKENS, PAD)
    # padding included, so a segment of nothing else as well
    assert largest_difference(model.encoder.encode(ids).flatten(1, 2), hidden) < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("name", HEADS)
def test_classification_heads(name: str) -> None:
    theirs = DATA[f"{name}/logits"]
    ours = imported(name, HEADS[name])(TOKENS, classification_head_name=HEAD)[0]
    assert largest_difference(ours.view_as(theirs), theirs) < 1e-5


@torch.no_grad()
def test_left_out_positions_change_the_output_and_equal_a_table_of_zeros() -> None:
    logits = DATA["MaskedLM/logits"]
    ours = imported("MaskedLM", flags=" --segment-positions none", segment_positions=False)(TOKENS)[0]
    assert largest_difference(ours[REAL], logits[REAL]) > 0.01
    zeroed = imported("MaskedLM")
    zeroed.encoder.segment_positions.weight.zero_()
    assert largest_difference(ours, zeroed(TOKENS)[0]) < 1e-5


@pytest.mark.parametrize("name", ["MaskedLM", *HEADS])
def test_there_and_back_is_the_same_state(name: str) -> None:
    model = imported(name, HEADS.get(name, "max"))
    back = to_hugging_face(model.state_dict(), 4, 8, pooled=HEADS.get(name) != "each")
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


KINDS = {"S": (True, False), "SD": (True, True), "D": (False, True)}
CONFIG = {
    "encoder_layout": {
        str(number): dict(zip(("sentence_encoder", "document_encoder"), KINDS[kind], strict=True))
        for number, kind in enumerate(["S", "SD", "D", "SD"])
    },
    "max_sentences": 4, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "vocab_size": 97,
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1,
}  # fmt: skip


def release(folder: Path, **changes: object) -> Path:
    """A folder as `save_pretrained` writes it."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    torch.save(state("MaskedLM"), folder / "pytorch_model.bin")
    return folder


@torch.no_grad()
@pytest.mark.parametrize("positions", ["add", "none"])
def test_a_released_folder_becomes_a_checkpoint_and_the_printed_flags_build_it(
    positions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out/model.pt"
    command = ["import", "kiddothe2b", str(release(tmp_path / "hf")), "--out", str(out)]
    assert cli.main([*command, "--segment-positions", positions]) == 0
    flags = re.search(r"^  --arch hierarchical_transformer (.*) --finetune-from-model", capsys.readouterr().out, re.M)
    assert flags is not None
    model = build("hierarchical_transformer", " ".join(shlex.split(flags[1])), Vocabulary(97, mask=True)).eval()
    model.load_state_dict(torch.load(out, weights_only=True)["model"])
    difference = largest_difference(model(TOKENS)[0][REAL], DATA["MaskedLM/logits"][REAL])
    assert difference < 1e-5 if positions == "add" else difference > 0.01
    assert cli.main(command) == 2 and "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pad_token_id": 0}, "pad_token_id is 0, only 1 can be converted"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"layer_norm_eps": None}, "nothing for layer_norm_eps"),
        ({"vocab_size": 98}, "embedding [98, 32]; the weights have 4 and [97, 32]"),
        ({"encoder_layout": {"0": CONFIG["encoder_layout"]["0"]}}, "1 layers"),
    ],
    ids=str,
)
def test_a_folder_that_is_something_else_is_refused(
    changes: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = release(tmp_path / "hf", **changes)
    assert cli.main(["import", "kiddothe2b", str(folder), "--out", str(tmp_path / "model.pt")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "model.pt").exists()
