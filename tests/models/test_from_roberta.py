"""Starting from RoBERTa: what is new, the layout of the first release, and what becomes of classification heads."""

from __future__ import annotations

import logging

import pytest
import torch
from building import PAD, TINY_ENCODER, Vocabulary, build, documents, released_roberta
from helpers import assert_close, is_new_part
from torch import Tensor

from hat_fairseq.models.encoder_model import HatRobertaModel


def model_of(flags: str = "", seed: int = 0, max_positions: int = 16, **options: object):
    vocabulary = Vocabulary(mask=True)
    return build(
        "hat_roberta_base", TINY_ENCODER + flags, vocabulary, seed=seed, max_positions=max_positions, **options
    )


def plain_state() -> dict[str, Tensor]:
    """What fairseq's RoBERTa saves today (the plain twin has its names; see test_hat_roberta.py)."""
    state = model_of(" --no-hierarchy", seed=7).state_dict()
    return {name: tensor for name, tensor in state.items() if not name.endswith("_fingerprint")}


@pytest.mark.parametrize("released", [False, True], ids=["today", "2019"])
def test_exactly_the_hierarchical_tensors_are_new_and_they_are_listed(
    released: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model, state = model_of(), plain_state()
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with caplog.at_level(logging.INFO):
        model.load_state_dict(released_roberta(state) if released else dict(state))
    new = [name for name in own if is_new_part(name, HatRobertaModel)]
    assert len(new) == 2 * 10  # attention and norm in each layer
    for name, tensor in model.state_dict().items():
        if name.endswith("_fingerprint"):
            continue
        assert torch.equal(tensor, own[name] if name in new else state[name]), name
        assert (f"  {name}" in caplog.text) == (name in new), name


def test_the_output_is_robertas_when_the_sentences_are_taken_out() -> None:
    state, source = plain_state(), documents([15, 9])
    plain, hat = model_of(" --no-hierarchy").eval(), model_of().eval()
    for model in (plain, hat):
        model.load_state_dict(dict(state))
    real = source != PAD
    assert not torch.allclose(hat(source)[0][real], plain(source)[0][real], atol=1e-3)
    encoder = hat.encoder.sentence_encoder
    encoder.hierarchical, encoder.layers = False, plain.encoder.sentence_encoder.layers
    assert_close(hat(source)[0][real], plain(source)[0][real])
