"""The numbers that the public code of Chalkidis et al. 2022 computes from its own weights, for every head."""

import torch
from building import BOS
from released_hat_sample import CONFIG, DATA, REAL, TOKENS, imported, largest_difference, state
from torch import Tensor

from hat_fairseq.weights.released_hat import HEAD, PREFIX, convert


def classify(name: str, pooling: str = "max") -> Tensor:
    return imported(name, pooling)(TOKENS, classification_head_name=HEAD)[0]


@torch.no_grad()
def test_states_and_masked_lm() -> None:
    model = imported("MaskedLM")
    hidden, logits = DATA["MaskedLM/last_hidden_state"], DATA["MaskedLM/logits"]
    assert largest_difference(model(TOKENS)[0][REAL], logits[REAL]) < 1e-5
    assert largest_difference(model(TOKENS, features_only=True)[0][REAL], hidden[REAL]) < 1e-5
    batch = model.encoder.arrange(TOKENS)
    states = model.encoder.embed(batch.tokens, batch.rows)
    for layer in model.encoder.layers:
        states = layer(states, batch.layout, model.encoder.segment_positions)
    assert largest_difference(states, hidden) < 1e-5  # padding included, so a segment of nothing else as well


@torch.no_grad()
def test_classification() -> None:
    """Of documents, of sentences, and of choices: the authors' (documents, choices, length) input is one of rows."""
    for pooling in ("max", "attentive"):
        name = f"SequenceClassification[pooling={pooling}]"
        assert largest_difference(classify(name, pooling), DATA[f"{name}/logits"]) < 1e-5
    for pooling in ("max", "first"):
        reference = DATA[f"MultipleChoice/logits[pooling={pooling}]"]
        assert largest_difference(classify("MultipleChoice", pooling).view_as(reference), reference) < 1e-5
    reference, logits = DATA["SequentialSentenceClassification/logits"], classify("SequentialSentenceClassification")
    present = TOKENS[:, ::8].eq(BOS)  # the reference has logits for the segment of padding as well
    assert present.sum(1).tolist() == [4, 3]
    assert largest_difference(logits[present], reference[present]) < 1e-5


@torch.no_grad()
def test_segment_positions_left_out_are_a_table_of_zeros_and_matter_otherwise() -> None:
    logits = DATA["MaskedLM/logits"]
    without = imported("MaskedLM", flags=" --segment-positions none", segment_positions=False)(TOKENS)[0]
    assert largest_difference(without[REAL], logits[REAL]) > 0.01
    zeroed = imported("MaskedLM")
    zeroed.encoder.segment_positions.weight.zero_()
    assert largest_difference(without, zeroed(TOKENS)[0]) < 1e-5


@torch.no_grad()
def test_padding_inside_a_segment_is_masked_or_attended_to() -> None:
    """The reference has a mask for it; the authors' tokenizer gives none, which is the other flag."""
    logits = DATA["MaskedLM/logits"]
    attended = imported("MaskedLM", flags=" --attend-segment-padding")(TOKENS)[0]
    assert largest_difference(attended[0], logits[0]) < 1e-5
    assert largest_difference(attended[1][REAL[1]], logits[1][REAL[1]]) > 1e-3


@torch.no_grad()
def test_the_bare_model_has_no_prefix() -> None:
    reference = {key.removeprefix(PREFIX): t for key, t in state("MaskedLM").items() if not key.startswith("lm_head.")}
    model = imported("MaskedLM")
    whole, bare = (convert(weights, CONFIG, "add").model for weights in (state("MaskedLM"), reference))
    encoder = {key: tensor for key, tensor in whole.items() if ".lm_head." not in key}
    assert bare.keys() == encoder.keys()
    assert all(torch.equal(bare[key], encoder[key]) for key in bare)
    model.load_state_dict(bare)  # the masked-LM head keeps its initialisation
    hidden = DATA["MaskedLM/last_hidden_state"]
    assert largest_difference(model(TOKENS, features_only=True)[0][REAL], hidden[REAL]) < 1e-5
