"""Starting from other checkpoints: what is new, what is taken over, what is extended, and what is refused."""

import logging
from argparse import Namespace
from typing import Any

import pytest
import torch
from building import TINY, TINY_ENCODER, Vocabulary, build, documents, released_roberta, small_hierarchical, targets
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from helpers import assert_close, is_new_part
from torch import Tensor

BART = TINY + " --no-hierarchy"
ROBERTA = f"{TINY_ENCODER} --max-positions"
SHORT = " --attention-window 4 --pooling-window 9 --encoder-attention-layers 1"
SPARSE = f"{TINY_ENCODER} --sparse-block 4 --sparse-random 1"


def plain_bart(vocabulary: Vocabulary | None = None, positions: int = 16) -> dict[str, Tensor]:
    """A checkpoint of BART as fairseq lays it out: with its bookkeeping, without fingerprints."""
    model = build("hat_bart_base", BART, vocabulary, seed=7, max_source_positions=positions)
    state = {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("_fingerprint")}
    return state | {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}


def plain_roberta() -> dict[str, Tensor]:
    model = build("hat_roberta_base", f"{ROBERTA} 16 --no-hierarchy", Vocabulary(mask=True), seed=7)
    return {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("_fingerprint")}


# Architecture, flags, positions, number of new tensors: attention and norm have 10, an encoder layer 16.
STARTS = {
    "HAT from BART": ("hat_bart_base", TINY, 16, 16 + 2 * 10),
    "HAT from RoBERTa": ("hat_roberta_base", TINY_ENCODER, 16, 2 * 10),
    "Poolingformer from BART": ("poolingformer_bart_base", TINY + SHORT, 37, 8),
    "Poolingformer from RoBERTa": ("poolingformer_base", TINY_ENCODER + SHORT, 37, 8),
    "ERNIE-Sparse": ("ernie_sparse_base", SPARSE, 37, 0),
    "separate projections": ("ernie_sparse_base", f"{SPARSE} --representative-weights separate", 37, 2 * 8),
    "residual update": ("ernie_sparse_base", f"{SPARSE} --representative-update residual", 37, 2 * 2),
}


@pytest.mark.parametrize("name", STARTS)
def test_exactly_the_parts_of_the_paper_are_new_and_they_are_listed(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Positions beyond the pretrained ones are copies; RoBERTa comes in the layout of 2019 too."""
    arch, flags, length, number = STARTS[name]
    is_bart = "bart" in arch
    state = plain_bart() if is_bart else plain_roberta()
    for saved in (state,) if is_bart else (state, released_roberta(state)):
        vocabulary = Vocabulary(mask=not is_bart)
        model = build(arch, flags, vocabulary, max_positions=length, max_source_positions=length)
        own = {key: tensor.clone() for key, tensor in model.state_dict().items()}
        caplog.clear()
        with caplog.at_level(logging.INFO):
            model.load_state_dict(dict(saved))
        new = [key for key in own if is_new_part(key, model)]
        assert len(new) == number
        for key, tensor in model.state_dict().items():
            if key.endswith("_fingerprint"):
                continue
            source = key.replace("representative_attn.", "self_attn.")  # separate projections start as shared ones
            expected = own[key] if key in new and source not in state else state[source]
            if len(expected) < len(tensor):
                assert key.startswith("encoder.")
                assert key.endswith("embed_positions.weight")
                expected = torch.cat([expected, expected[2:], expected[2:7]])
            assert torch.equal(tensor, expected), key
            assert (f"  {key}" in caplog.text) == (key in new), key


def test_separate_projections_of_representatives_start_as_shared_ones() -> None:
    """The states are equal until training; a checkpoint of separate projections is loaded as it is."""
    state, states = plain_roberta(), []
    for weights in ("shared", "separate"):
        model = build("ernie_sparse_base", f"{SPARSE} --representative-weights {weights}", Vocabulary(mask=True))
        model.load_state_dict(dict(state))
        states.append(model.eval().encoder(documents([37, 9])).tokens)
    assert_close(*states)
    trained = {
        name: tensor + 1 if "representative_attn" in name else tensor for name, tensor in model.state_dict().items()
    }
    model.load_state_dict(dict(trained))
    assert all(torch.equal(tensor, trained[name]) for name, tensor in model.state_dict().items())


def test_a_model_of_meetings_starts_from_one_of_news(caplog: pytest.LogCaptureFixture) -> None:
    """As the recipes do it: the hierarchy comes along; roles and positions beyond the first model's are random."""
    segments, positions = "encoder.embed_segments.weight", "encoder.embed_positions.weight"
    news = build("hat_bart_base", TINY, seed=7, max_source_positions=16).state_dict()
    meetings = build("hat_bart_base", TINY, Vocabulary(roles=3))
    fresh = {name: tensor.clone() for name, tensor in meetings.state_dict().items()}
    with caplog.at_level(logging.INFO):
        meetings.load_state_dict(dict(news))
    expected = {**news, segments: fresh[segments], positions: torch.cat([news[positions], fresh[positions][18:]])}
    for name, tensor in meetings.state_dict().items():
        assert name == "encoder.segment_dictionary_fingerprint" or torch.equal(tensor, expected[name]), name
    assert f"newly initialised 1 tensors:\n  {segments}" in caplog.text
    assert f"{positions}: extended from 18 to 66 rows (random)" in caplog.text


def test_where_random_positions_begin_and_which_tables_are_shared() -> None:
    """The paper draws positions from 512 on. Older checkpoints have no output projection."""
    state = plain_bart()
    del state["decoder.output_projection.weight"]
    model = build("hat_bart_base", BART + " --extend-positions-from 8")
    fresh, table = model.encoder.embed_positions.weight.detach().clone(), state["encoder.embed_positions.weight"]
    model.load_state_dict(dict(state))
    assert torch.equal(model.encoder.embed_positions.weight, torch.cat([table[:10], fresh[10:]]))
    assert torch.equal(model.decoder.output_projection.weight, state["decoder.embed_tokens.weight"])


def test_the_row_of_mask_is_dropped_only_without_mask_in_the_dictionary() -> None:
    with_mask = Vocabulary(61, mask=True)
    state = plain_bart(with_mask)
    for vocabulary, rows in ((None, 60), (with_mask, 61)):
        model = build("hat_bart_base", BART, vocabulary, max_source_positions=16)
        model.load_state_dict(dict(state))
        assert torch.equal(model.encoder.embed_tokens.weight, state["encoder.embed_tokens.weight"][:rows])


@pytest.mark.fault(
    "Checkpoints",
    "a checkpoint that was trained with another `--decoder-kv-heads`",
    "names the tensors with both sizes",
)
def test_heads_that_share_keys_start_from_the_means_of_barts() -> None:
    """Ainslie et al. 2023, section 2.1; where the heads of a group are equal, the logits are BART's."""
    state, name = plain_bart(), "decoder.layers.1.encoder_attn.k_proj.weight"
    shared = build("hat_bart_base", f"{BART} --decoder-kv-heads 2", max_source_positions=16).eval()
    shared.load_state_dict(dict(state))
    loaded = shared.state_dict()
    heads = state[name].split(6)
    assert_close(loaded[name], torch.cat([(heads[0] + heads[1]) / 2, (heads[2] + heads[3]) / 2]))
    for key in loaded:
        if "encoder_attn.k_proj" in key or "encoder_attn.v_proj" in key:
            state[key] = loaded[key].unflatten(0, (2, 6)).repeat_interleave(2, 0).flatten(0, 1)
    bart = build("hat_bart_base", BART, max_source_positions=16).eval()
    bart.load_state_dict(dict(state))
    source, target = documents([15, 9, 2]), targets(3, 8)
    assert_close(shared(source, None, target)[0], bart(source, None, target)[0])


@pytest.mark.parametrize(("flags", "rows"), [(" --decoder-kv-heads 1", 6), ("", 24)])
def test_heads_that_share_keys_do_not_start_from_others_that_do(flags: str, rows: int) -> None:
    shared = build("hat_bart_base", f"{BART} --decoder-kv-heads 2", max_source_positions=16).state_dict()
    other = build("hat_bart_base", BART + flags, max_source_positions=16)
    with pytest.raises(ValueError, match=rf"encoder_attn.k_proj.weight is \[12, 24\], the model has \[{rows}, 24\]"):
        other.load_state_dict(dict(shared))


def test_other_mismatches_are_named() -> None:
    model = build("hat_bart_base")
    state = plain_bart(positions=100)
    state["decoder.layers.7.fc1.bias"] = state.pop("decoder.layers.1.fc1.bias")
    state["encoder.hierarchical_encoder.layers.0.fc2.bias"] = torch.zeros(24)  # half a hierarchy is damage
    with pytest.raises(ValueError) as error:
        model.load_state_dict(state)
    for part in (
        "missing decoder.layers.1.fc1.bias [40]",
        "unknown decoder.layers.7.fc1.bias [40]",
        "missing encoder.hierarchical_encoder.layers.0.fc1.bias [40]",
        "encoder.embed_positions.weight is [102, 24], the model has [66, 24]",
    ):
        assert part in str(error.value)


def test_a_damaged_masked_lm_head_is_no_new_head() -> None:
    state = build("hat_roberta_base", TINY_ENCODER).state_dict()
    del state["encoder.lm_head.dense.bias"]
    with pytest.raises(ValueError, match=r"missing encoder\.lm_head\.dense\.bias"):
        build("hat_roberta_base", TINY_ENCODER).load_state_dict(state)


def test_another_dictionary_of_the_same_size_is_refused() -> None:
    """Fingerprints survive fairseq's average_checkpoints, which sums all tensors and divides integers."""
    state = build("hat_bart_base").state_dict()
    averaged = {name: (t + t + t) / 3 if t.is_floating_point() else (t + t + t) // 3 for name, t in state.items()}
    build("hat_bart_base").load_state_dict(averaged)
    other = Vocabulary()
    symbols = other.source_dictionary.symbols
    symbols[10], symbols[11] = symbols[11], symbols[10]
    with pytest.raises(ValueError, match="trained with another dictionary"):
        build("hat_bart_base", task=other).load_state_dict(state)


def roberta(layers: int = 3, positions: int = 64) -> Any:
    """A RoBERTa of fairseq."""
    sizes = {"encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_attention_heads": 4}
    args = Namespace(arch="roberta", max_positions=positions, dropout=0.0, encoder_layers=layers, **sizes)
    ARCH_CONFIG_REGISTRY["roberta"](args)
    torch.manual_seed(9)
    return ARCH_MODEL_REGISTRY["roberta"].build_model(args, Vocabulary()).eval()


@pytest.mark.parametrize("released", [False, True], ids=["today", "2019"])
def test_segments_take_each_layer_of_roberta_twice_and_crop_positions(released: bool) -> None:
    pretrained, model, prefix = roberta().state_dict(), small_hierarchical("S|SD|D"), "encoder.sentence_encoder."
    model.load_state_dict(released_roberta(pretrained) if released else dict(pretrained))
    state = model.state_dict()
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
        small_hierarchical("S|S|S|S").load_state_dict(dict(pretrained))
    with pytest.raises(ValueError, match="needs 8 positions of RoBERTa, which has 6"):
        small_hierarchical("S|S").load_state_dict(roberta(positions=4).state_dict())


@pytest.mark.parametrize("flags", ["", " --no-hierarchy", " --share-all-embeddings"])
def test_an_encoder_decoder_whose_encoder_is_a_roberta(flags: str, caplog: pytest.LogCaptureFixture) -> None:
    """BERT2RND of Rothe et al. 2020: the decoder is new but for the table that it shares; heads are left out."""
    roberta = plain_roberta()
    for state in (roberta, released_roberta(roberta)):
        options = f"{TINY} --encoder-learned-pos --layernorm-embedding --activation-fn gelu --no-scale-embedding{flags}"
        options += " --encoder-from roberta.pt"
        model = build("hat_transformer", options, Vocabulary(59), max_source_positions=16).eval()
        own = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        caplog.clear()
        with caplog.at_level(logging.INFO):
            model.load_state_dict(dict(state))
        assert "the encoder is started from RoBERTa; newly initialised" in caplog.text
        assert "encoder.lm_head.dense.weight" in caplog.text
        for name, tensor in model.state_dict().items():
            if name.startswith("decoder.") and not (flags.endswith("embeddings") and tensor.shape == (59, 24)):
                assert torch.equal(tensor, own[name]), name
        peer = build("hat_roberta_base", f"{ROBERTA} 16 --no-hierarchy", Vocabulary(mask=True)).eval()
        peer.load_state_dict(dict(roberta))
        source = documents([15, 9, 2], vocabulary=59)
        states = peer(source, features_only=True)[0]
        assert_close(model.encoder(source).tokens[source != 1], states[source != 1])
        assert model(source, None, targets(3, 8, 59))[0].isfinite().all()


def test_an_encoder_of_another_dictionary_is_refused() -> None:
    """A trained encoder has the dictionary with <mask>, an encoder-decoder without; any other one is an error."""
    options = f"{TINY} --encoder-learned-pos --layernorm-embedding --activation-fn gelu --no-scale-embedding"
    options += " --encoder-from roberta.pt"
    trained = build("hat_roberta_base", f"{ROBERTA} 16 --no-hierarchy", Vocabulary(mask=True)).state_dict()
    model = build("hat_transformer", options, Vocabulary(59), max_source_positions=16)
    model.load_state_dict(dict(trained))
    other = dict(trained) | {"encoder.dictionary_fingerprint": torch.zeros(8, dtype=torch.long)}
    with pytest.raises(ValueError, match="the checkpoint was trained with another dictionary"):
        model.load_state_dict(other)
