"""Starting from a plain checkpoint: what is extended, what is new, and what is refused."""

from __future__ import annotations

import logging

import pytest
import torch
from building import TINY, Vocabulary, build, documents, targets
from helpers import assert_close, is_new_part

from hat_fairseq.models.hat_transformer import HatTransformerModel

BART = TINY + " --no-hierarchy"


def plain_state(vocabulary: Vocabulary | None = None, positions: int = 16) -> dict[str, torch.Tensor]:
    """A BART checkpoint as fairseq lays it out: its bookkeeping, and none of our fingerprints."""
    state = build(
        "hat_bart_base", BART, vocabulary or Vocabulary(), seed=7, max_source_positions=positions
    ).state_dict()
    state = {name: tensor for name, tensor in state.items() if not name.endswith("_fingerprint")}
    return state | {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}


def test_exactly_the_hierarchical_tensors_are_new_and_they_are_listed(caplog: pytest.LogCaptureFixture) -> None:
    model = build("hat_bart_base", task=Vocabulary(roles=2), max_source_positions=16)
    own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = plain_state()
    with caplog.at_level(logging.INFO):
        model.load_state_dict(dict(state))
    new = [name for name in own if is_new_part(name, HatTransformerModel)]
    assert len(new) == 16 + 2 * 10 + 1  # one encoder layer; attention and norm in each decoder layer; the segment table
    for name, tensor in model.state_dict().items():
        if name.endswith("_fingerprint"):
            continue
        assert torch.equal(tensor, own[name] if name in new else state[name]), name
        assert (f"  {name}" in caplog.text) == (name in new), name


def test_older_checkpoints_without_output_projection_load() -> None:
    state = plain_state()
    del state["decoder.output_projection.weight"]
    model = build("hat_bart_base", BART, max_source_positions=16)
    model.load_state_dict(state)
    assert torch.equal(model.decoder.output_projection.weight, state["decoder.embed_tokens.weight"])


@pytest.mark.parametrize("strategy", ["random", "tile", "repeat-last"])
def test_positions_are_extended(strategy: str, caplog: pytest.LogCaptureFixture) -> None:
    model = build("hat_bart_base", BART + f" --extend-positions {strategy}")
    fresh = model.encoder.embed_positions.weight.detach().clone()
    state = plain_state()
    table = state["encoder.embed_positions.weight"].clone()
    with caplog.at_level(logging.INFO):
        model.load_state_dict(state)
    extended = model.encoder.embed_positions.weight
    assert torch.equal(extended[:18], table)
    expected = {"random": fresh[18:34], "tile": table[2:18], "repeat-last": table[-1:].expand(16, -1)}[strategy]
    assert torch.equal(extended[18:34], expected)
    assert "encoder.embed_positions.weight: extended from 18 to 66 rows" in caplog.text


def test_random_positions_can_begin_earlier_as_in_the_paper() -> None:
    model = build("hat_bart_base", BART + " --extend-positions-from 8")
    fresh, state = model.encoder.embed_positions.weight.detach().clone(), plain_state()
    table = state["encoder.embed_positions.weight"].clone()
    model.load_state_dict(state)
    assert torch.equal(model.encoder.embed_positions.weight, torch.cat([table[:10], fresh[10:]]))


def test_the_output_is_the_plain_models_until_the_new_parts_speak() -> None:
    """With its sentence attention silenced, HAT from BART computes what BART computes."""
    state = plain_state(positions=64)
    plain = build("hat_bart_base", BART).eval()
    plain.load_state_dict(dict(state))
    hat = build("hat_bart_base", TINY.replace("24 ", "24 ", 1)).eval()
    hat.load_state_dict(dict(state))
    source, target = documents([17, 9]), targets(2, 6)
    assert not torch.allclose(hat(source, None, target)[0], plain(source, None, target)[0], atol=1e-3)
    for layer in hat.decoder.layers:  # post-norm: a silent attention still normalises, so take it out as a whole
        layer.sentence_attn = layer.sentence_attn_layer_norm = None
    assert_close(hat(source, None, target)[0], plain(source, None, target)[0])


def test_mask_row_is_dropped_only_without_mask_in_the_dictionary() -> None:
    with_mask = Vocabulary(61, mask=True)
    state = plain_state(with_mask)
    model = build("hat_bart_base", BART, max_source_positions=16)
    model.load_state_dict(dict(state))
    assert torch.equal(model.encoder.embed_tokens.weight, state["encoder.embed_tokens.weight"][:60])
    keeps = build("hat_bart_base", BART, with_mask, max_source_positions=16)
    keeps.load_state_dict(dict(state))
    assert keeps.encoder.embed_tokens.weight.size(0) == 61


def test_other_mismatches_are_named() -> None:
    model = build("hat_bart_base")
    state = plain_state()
    state["decoder.layers.7.fc1.bias"] = state.pop("decoder.layers.1.fc1.bias")
    state["encoder.layers.0.fc1.weight"] = torch.zeros(41, 24)
    with pytest.raises(ValueError) as error:
        model.load_state_dict(state)
    for part in (
        "missing decoder.layers.1.fc1.bias [40]",
        "unknown decoder.layers.7.fc1.bias [40]",
        "encoder.layers.0.fc1.weight is [41, 24], the model has [40, 24]",
    ):
        assert part in str(error.value)


def test_half_a_hierarchy_is_damage_not_a_plain_checkpoint() -> None:
    model = build("hat_bart_base")
    state = model.state_dict()
    del state["encoder.hierarchical_encoder.layers.0.fc1.weight"]
    with pytest.raises(ValueError, match="missing encoder.hierarchical_encoder.layers.0.fc1.weight"):
        model.load_state_dict(state)


def test_more_positions_than_the_model_has_are_refused() -> None:
    with pytest.raises(ValueError, match="encoder.embed_positions.weight is .102, 24., the model has .66, 24."):
        build("hat_bart_base").load_state_dict(plain_state(positions=100))


def test_another_dictionary_of_the_same_size_is_refused() -> None:
    state = build("hat_bart_base").state_dict()
    other = Vocabulary()
    symbols = other.source_dictionary.symbols
    symbols[10], symbols[11] = symbols[11], symbols[10]
    with pytest.raises(ValueError, match="trained with another dictionary"):
        build("hat_bart_base", task=other).load_state_dict(state)


def test_fingerprints_survive_checkpoint_averaging() -> None:
    """fairseq's average_checkpoints sums all tensors and divides integers by their number."""
    state = build("hat_bart_base").state_dict()
    averaged = {name: (t + t + t) / 3 if t.is_floating_point() else (t + t + t) // 3 for name, t in state.items()}
    build("hat_bart_base").load_state_dict(averaged)
