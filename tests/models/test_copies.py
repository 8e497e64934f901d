"""Copies of every network are models of their own: pickled, deep copies, and the replicas of `nn.DataParallel`."""

import copy
import io
import pickle
from typing import Any

import pytest
import small_networks
import torch
from building import build, documents, small_hierarchical
from copied import change, replica_of
from torch import Tensor
from unit_tokens import drawn, evidence_model, padded, row

TOKENS = padded(row([[5, 6]], drawn(3, 9, 12)))
NAMES = pytest.mark.parametrize("name", [*small_networks.NETWORKS, "evidence"])


def model_of(name: str) -> Any:
    model = evidence_model() if name == "evidence" else small_networks.model_of(name)
    return model.eval()


def run(name: str, model: Any) -> Tensor:
    if name == "evidence":
        return model(TOKENS, classification_head_name="evidence")[0]
    return small_networks.run(model, small_networks.source_of(name))


@NAMES
def test_a_copy_computes_the_same_and_is_independent(name: str) -> None:
    model = model_of(name)
    expected = run(name, model)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), replica_of(model)]
    torch.save(model, saved := io.BytesIO())
    copies.append(torch.load(io.BytesIO(saved.getvalue()), weights_only=False))
    for each in copies:
        assert torch.equal(run(name, each), expected)
    for each in copies:
        change(each)
    assert torch.equal(run(name, model), expected)
    change(model)
    changed = run(name, model)
    assert not torch.equal(changed, expected)
    for each in copies:  # each module that a copy calls is its own
        assert torch.equal(run(name, each), changed)


def test_hooks_on_the_parts_of_an_encoder_are_called() -> None:
    calls: list[str] = []
    hierarchical, hat = small_hierarchical("S|SD"), build("hat_transformer").encoder
    parts = {"positions": hierarchical.encoder.segment_positions, "sentences": hat.hierarchical_encoder}
    for part, module in parts.items():
        module.register_forward_hook(lambda *_, part=part: calls.append(part))
    hierarchical(documents([17, 9]))
    hat(documents([17, 9]))
    assert calls == ["positions", "sentences"]
