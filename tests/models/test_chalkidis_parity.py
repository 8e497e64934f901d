"""The numbers that the public code of Chalkidis et al. 2022 computes from its own weights, for every head; and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from building import PAD, Vocabulary, build
from commands import REPOSITORY
from torch import Tensor

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
