"""Where the weights of a `hierarchical_transformer` come from: RoBERTa, another of its kind, another dictionary."""

from __future__ import annotations

import io
from argparse import Namespace
from typing import Any

import pytest
import torch
from building import Vocabulary, build, documents, released_roberta
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from helpers import assert_close
from hierarchical import LENGTHS, SMALL, small, with_head
from torch import Tensor


def roberta(layers: int = 3, positions: int = 64) -> Any:
    sizes = {"encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_attention_heads": 4}
    args = Namespace(arch="roberta", max_positions=positions, dropout=0.0, encoder_layers=layers, **sizes)
    ARCH_CONFIG_REGISTRY["roberta"](args)
    torch.manual_seed(9)
    return ARCH_MODEL_REGISTRY["roberta"].build_model(args, Vocabulary()).eval()


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 5, 64])
def test_started_from_roberta_one_segment_without_cross_attention_is_roberta(length: int) -> None:
    pretrained, tokens = roberta(), documents([length])
    flags = SMALL.replace("--segment-length 6", "--segment-length 64") + "S|S|S"
    model = build("hierarchical_transformer", flags).eval()
    model.load_state_dict(pretrained.state_dict())  # through the hook that a --restore-file takes
    assert_close(model(tokens)[0], pretrained(tokens)[0])
    assert_close(model(tokens, features_only=True)[0], pretrained(tokens, features_only=True)[0])
    masked = torch.rand(tokens.shape) < 0.5
    assert_close(model(tokens, masked_tokens=masked)[0], pretrained(tokens, masked_tokens=masked)[0])


@pytest.mark.parametrize("released", [False, True], ids=["today", "2019"])
def test_start_from_roberta_takes_each_layer_twice_and_crops_positions(released: bool) -> None:
    pretrained = roberta().state_dict()
    model = small("S|SD|D")
    model.load_state_dict(released_roberta(pretrained) if released else dict(pretrained))
    state, prefix = model.state_dict(), "encoder.sentence_encoder."
    for name, tensor in state.items():
        if ".layers." in name:
            source = name.replace("encoder.", prefix, 1).replace("segment_wise.", "").replace("cross_segment.", "")
            assert torch.equal(tensor, pretrained[source]), name
    positions = pretrained[prefix + "embed_positions.weight"]
    assert torch.equal(state["encoder.embed_positions.weight"], positions[:8])
    assert torch.equal(state["encoder.segment_positions.weight"], positions[1:7])
    assert torch.equal(state["encoder.lm_head.bias"], pretrained["encoder.lm_head.bias"])
    assert not state["encoder.embed_token_type.weight"].any()
    with pytest.raises(ValueError, match="RoBERTa has no layers.3."):
        small("S|S|S|S").load_state_dict(dict(pretrained))
    with pytest.raises(ValueError, match="needs 8 positions of RoBERTa, which has 6"):
        small("S|S").load_state_dict(roberta(positions=4).state_dict())


def reloaded(model: Any) -> dict[str, Tensor]:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def test_loaded_equals_fresh_and_heads_come_and_go(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    tokens = documents(LENGTHS)
    pretrained, other = small(), small(seed=1)
    other.load_state_dict(reloaded(pretrained))
    assert torch.equal(other.eval()(tokens)[0], pretrained.eval()(tokens)[0]) and "newly" not in caplog.text

    classifier = with_head("attentive").eval()
    head = {name: tensor.clone() for name, tensor in classifier.classification_heads.state_dict().items()}
    classifier.load_state_dict(reloaded(pretrained))
    assert_close(classifier(tokens, features_only=True)[0], pretrained(tokens, features_only=True)[0])
    assert all(torch.equal(t, head[name]) for name, t in classifier.classification_heads.state_dict().items())
    assert "lm_head: not in the model; left out 6" in caplog.text and "topic: newly initialised 7" in caplog.text

    back = small(seed=2).eval()
    back.load_state_dict(reloaded(classifier))
    assert_close(back(tokens, features_only=True)[0], pretrained(tokens, features_only=True)[0])
    assert back.encoder.lm_head.weight is back.encoder.embed_tokens.weight
    broken = reloaded(pretrained)
    del broken["encoder.layers.0.segment_wise.fc1.bias"]
    with pytest.raises(ValueError, match="segment_wise.fc1.bias"):
        small().load_state_dict(broken)
