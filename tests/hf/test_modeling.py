"""The models of transformers compute what fairseq's do, before and after a folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from building import BOS, EOS, PAD, TINY, Vocabulary, build, documents, targets
from helpers import assert_close
from hf_models import ENCODERS, HEADS, WRITERS, config_of, encoder, filled, roles_of, variants, writer
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy

from hat_fairseq.generation.shared_memory import SharedMemoryGenerator
from hat_fairseq.kernels.precision import PackedLinear
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.networks import NETWORKS, without_training

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq import hf  # noqa: E402

LENGTHS = [40, 23, 9, 30]
EVIDENCE = {
    **{"encoder_layers": 2, "encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_attention_heads": 4},
    **{"max_positions": 64, "segment_length": 32},
}
END = {"roles": 4.0, "tables": 3.0, "bart": 2.0, "pooling": 3.0}  # how likely </s> is made
OPTIONS = {"early_stopping": True, "forced_eos_token_id": EOS, "suppress_tokens": [PAD]}


@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_logits_of_an_encoder_decoder(name: str, tmp_path: Path) -> None:
    model, peer = writer(name)
    peer.save_pretrained(tmp_path)
    loaded, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    source, target = documents(LENGTHS), targets(4, 9)
    expected = model(source, None, target, **roles_of(model, source, "roles"))[0]
    for inputs in variants(source):
        for each in (peer, loaded):
            roles = roles_of(model, inputs["input_ids"])
            assert_close(each(**inputs, **roles, decoder_input_ids=target).logits, expected)
    labels = torch.cat([target[:, 1:], torch.tensor([[EOS]] * 4)], dim=1)
    labels[1:, 6:] = -100
    for none in (-100, PAD):
        loss = peer(source, labels=labels.masked_fill(labels < 0, none), **roles_of(model, source)).loss
        assert_close(loss, cross_entropy(expected.flatten(0, 1), labels.flatten()))
    tables = {tensor.data_ptr() for tensor in model.parameters()}
    assert len(load_file(tmp_path / "model.safetensors")) == len(tables) == len({*loaded.parameters()})


@torch.no_grad()
@pytest.mark.parametrize("name", ENCODERS)
def test_logits_of_all_heads_of_an_encoder(name: str, tmp_path: Path) -> None:
    tokens = documents(LENGTHS)
    tokens[:, 5] = EOS  # a question ends
    model, config = encoder(name, HEADS)
    peer = filled(model, hf.HatModel(config))
    peer.save_pretrained(tmp_path)
    loaded = transformers.AutoModel.from_pretrained(tmp_path)
    assert loaded.config.heads == config.heads
    expected = model(tokens, classification_head_name=list(model.classification_heads))[0]
    parts = torch.arange(10) < tokens.eq(BOS).sum(dim=1, keepdim=True)
    for inputs in variants(tokens):
        words = inputs.get("attention_mask", inputs["input_ids"].ne(PAD))
        for logits in (peer(**inputs).logits, loaded(**inputs).logits):
            assert logits.keys() == expected.keys() >= HEADS.keys()
            assert_close(logits["word"][words], expected["word"][tokens.ne(PAD)])
            assert_close(logits["part"][parts], expected["part"][parts])
            for head in logits.keys() - {"word", "part"}:
                assert_close(logits[head], expected[head])


@torch.no_grad()
@pytest.mark.parametrize("name", ["hat", "bigbird", "segments"])
def test_logits_of_words(name: str, tmp_path: Path) -> None:
    tokens = documents(LENGTHS)
    model, config = encoder(name, {})
    peer = filled(model, hf.HatForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path)
    expected, real = model(tokens)[0], tokens.ne(PAD)
    labels = tokens.where(torch.rand(tokens.shape) < 0.3, -100).masked_fill(~real, -100)
    for each in (peer, loaded):
        assert_close(each(tokens).logits[real], expected[real])
        assert_close(each(tokens, labels=labels).loss, cross_entropy(expected.flatten(0, 1), labels.flatten()))


@pytest.mark.slow
def test_heads_for_answers_and_for_tokens_do_not_stand_in_for_each_other(tmp_path: Path) -> None:
    """Nor does one of several classes for choices. A class finds what it has saved itself, with names or without."""
    tokens, answers = transformers.AutoModelForTokenClassification, transformers.AutoModelForQuestionAnswering
    choices = transformers.AutoModelForMultipleChoice
    named = {"level": "token", "classes": 2, "inner_dim": None, "labels": ["mark", "word"]}
    for number, (head, own, other) in enumerate(
        (
            (named, tokens, answers),
            ({**named, "labels": None}, answers, tokens),
            ({**named, "level": "document"}, transformers.AutoModelForSequenceClassification, choices),
        )
    ):
        heads = {"head": {key: value for key, value in head.items() if key != "labels" or value is not None}}
        config = encoder("hat", {})[1]
        config.heads = heads
        hf.HatModel(config).save_pretrained(tmp_path / str(number))
        for auto, new in ((own, False), (other, True)):
            model, info = auto.from_pretrained(tmp_path / str(number), output_loading_info=True)
            assert bool(info["missing_keys"]) == bool(info["unexpected_keys"]) == new
            model.save_pretrained(tmp_path / "saved")
            assert not auto.from_pretrained(tmp_path / "saved", output_loading_info=True)[1]["missing_keys"]
            other_one = answers if auto is tokens else tokens
            assert other_one.from_pretrained(tmp_path / "saved", output_loading_info=True)[1]["missing_keys"]


class Paragraphs(hf.HatForSegmentClassification):
    levels = ("paragraph", "paragraphs")


def test_a_head_about_something_else_stays_in_its_folder(tmp_path: Path) -> None:
    """Of several heads a class takes its own; a head of a name that is taken is new under another one."""
    model, config = encoder("hat", HEADS)
    filled(model, hf.HatModel(config)).save_pretrained(tmp_path / "all")
    loaded, info = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "all", num_labels=3, output_loading_info=True
    )
    assert [*loaded.config.heads] == ["word"]
    assert not info["missing_keys"]
    tokens = documents(LENGTHS)
    assert_close(loaded(tokens).logits, model(tokens, classification_head_name="word")[0])
    hf.HatForSequenceClassification(encoder("hat", {})[1]).save_pretrained(tmp_path / "documents")
    auto = transformers.AutoModelForTokenClassification
    loaded, info = auto.from_pretrained(tmp_path / "documents", output_loading_info=True)
    assert info["missing_keys"] == {name for name in loaded.state_dict() if "token_classification_head" in name}
    assert loaded(tokens).logits.shape == (*tokens.shape, 2)
    assert [*loaded.config.heads] == ["token_classification_head"]
    loaded.save_pretrained(tmp_path / "words")
    again = auto.from_pretrained(tmp_path / "words")
    assert torch.equal(again(tokens).logits, loaded.eval()(tokens).logits)


@pytest.mark.parametrize("name", ["hat", "segments", "roles", "tables"])
def test_a_table_that_no_file_has_is_missing(name: str, tmp_path: Path) -> None:
    """Under any of its names a table is there; without one of them it is initialised, and transformers says so."""
    if name in WRITERS:
        peer: Any = writer(name)[1]
    else:
        model, config = encoder(name, {})
        peer = filled(model, hf.HatForMaskedLM(config))
    peer.save_pretrained(tmp_path)
    state, path = load_file(tmp_path / "model.safetensors"), tmp_path / "model.safetensors"
    tied = peer.all_tied_weights_keys
    source = next(iter(tied.values()))
    for alias in (target for target, other in tied.items() if other == source):
        save_file({alias if key == source else key: x for key, x in state.items()}, path, {"format": "pt"})
        loaded, info = type(peer).from_pretrained(tmp_path, output_loading_info=True)
        assert not info["missing_keys"]
        assert not info["unexpected_keys"]
        other = [key for key, x in loaded.state_dict().items() if not torch.equal(x, peer.state_dict()[key])]
        assert not other, alias
    save_file({key: x for key, x in state.items() if key != source}, path, {"format": "pt"})
    loaded, info = type(peer).from_pretrained(tmp_path, output_loading_info=True)
    assert source in info["missing_keys"]
    table = loaded.get_parameter(source)
    assert 0.01 < table.std() < 0.3
    assert not torch.allclose(table, peer.get_parameter(source))
    assert all(loaded.get_parameter(key) is table for key, other in tied.items() if other == source)


@pytest.mark.parametrize("name", ["hat", "segments", "roles"])
def test_a_model_that_began_without_memory(name: str) -> None:
    """torch's device "meta", as large models are built: buffers are filled, tables are tied, the rest is drawn."""
    peer: Any = writer(name)[1] if name in WRITERS else hf.HatForMaskedLM(encoder(name, {})[1])
    with torch.device("meta"):
        empty = type(peer)(peer.config)
    model = empty.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    model.init_weights()
    for key, expected in peer.named_buffers():
        assert torch.equal(model.get_buffer(key), expected), key
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    for key, other in peer.all_tied_weights_keys.items():
        assert model.get_parameter(key) is model.get_parameter(other)


def new_evidence() -> tuple[Any, Any, dict[str, Any]]:
    """A folder's model without the head, and what adds it."""
    config = hf.HatConfig("hat_units", EVIDENCE, vocab_size=60)
    return (
        hf.HatModel(config),
        hf.HatModel,
        {"heads": {"found": {"level": "evidence", "classes": 1, "inner_dim": None}}},
    )


@pytest.mark.parametrize("nested", [True, False])
def test_settings_of_a_training_are_not_those_of_a_folder(nested: bool, tmp_path: Path) -> None:
    """A folder of somebody else would choose a file that `train` writes; who loads it may state them."""
    dropped = NETWORKS["hat_units"].training_only
    stranger = dict.fromkeys(dropped, str(tmp_path / "written.npz")) | {"freeze_encoder": True, "freeze_layers": 1}
    new_evidence()[0].save_pretrained(folder := tmp_path / "folder")
    config = json.loads((folder / "config.json").read_text())
    config = config | {"settings": config["settings"] | stranger} if nested else config | stranger
    (folder / "config.json").write_text(json.dumps(config))
    loaded = hf.HatModel.from_pretrained(folder)
    assert not loaded.config.settings.keys() & {*dropped}
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert hf.HatModel.from_pretrained(folder, freeze_encoder=True).config.freeze_encoder is True
    description = without_training(ModelFolder.open(folder).description)
    assert not description["settings"].keys() & {*dropped}
    assert description["settings"]["encoder_layers"] == 2


def new_hierarchy() -> tuple[Any, Any, dict[str, Any]]:
    """The baseline of an encoder-decoder that keeps what fairseq draws, and what adds its hierarchy and pooling."""
    arch, flags, _ = WRITERS["tables"]
    model, wide = (
        build(arch, f"{TINY} {flags} --no-hierarchy"),
        {"max_source_positions": 64, "max_target_positions": 32},
    )
    full = build(arch, f"{TINY} {flags} --encoder-attention pooling --pooling-variant mix --attention-window 4")
    peer = filled(model, hf.HatForConditionalGeneration(config_of(model, "hat_transformer", **wide)))
    return peer, type(peer), {"settings": config_of(full, "hat_transformer", **wide).settings}


@pytest.mark.parametrize("setting", [new_evidence, new_hierarchy])
def test_what_a_folder_lacks_begins_as_in_a_new_model(setting: Callable[[], Any], tmp_path: Path) -> None:
    """Buffers, too, and loaded tables keep all their rows."""
    model, kind, more = setting()
    with torch.no_grad():
        model.core.embed_tokens.weight[PAD] = 3.0
    model.save_pretrained(tmp_path)
    loaded, info = kind.from_pretrained(tmp_path, **more, output_loading_info=True)
    new, state = kind(loaded.config).state_dict(), loaded.state_dict()
    assert len(info["missing_keys"]) > 10
    for name in info["missing_keys"]:
        if new[name].eq(new[name].flatten()[0]).all():
            assert torch.equal(state[name], new[name]), name
        else:  # few values differ more by chance
            least, most = (0.8, 1.25) if new[name].numel() > 200 else (0.2, 5)
            assert least < state[name].square().mean().sqrt() / new[name].square().mean().sqrt() < most, name
    assert (loaded.core.embed_tokens.weight[PAD] == 3).all()


def test_what_a_folder_lacks_is_initialised_and_nothing_else(tmp_path: Path) -> None:
    model, config = encoder("hat", {})
    filled(model, hf.HatForMaskedLM(config)).save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    lost = {name for name in state if ".1.sentence_attn" in name} - {
        "encoder.sentence_encoder.layers.1.sentence_attn.q_proj.weight"
    }
    rest = {name: tensor for name, tensor in state.items() if name not in lost}
    save_file(rest, tmp_path / "model.safetensors", {"format": "pt"})
    auto = transformers.AutoModelForSequenceClassification
    peer, info = auto.from_pretrained(tmp_path, num_labels=5, output_loading_info=True)
    head = {name for name in peer.state_dict() if name.startswith("classification_heads.sentence_classification_head.")}
    assert info["missing_keys"] == lost | head
    assert len(head) == 4
    assert len(lost) == 9
    for name, tensor in peer.state_dict().items():
        if name in rest:
            assert torch.equal(tensor, rest[name]), name
        elif "layer_norm.weight" in name:
            assert (tensor == 1).all(), name
        else:
            assert (tensor == 0).all() if name.endswith("bias") else 0.01 < tensor.std() < 0.03, name
    assert peer(documents(LENGTHS)).logits.shape == (4, 5)
    with pytest.raises(ValueError, match="the heads place, all are of one kind: load them with AutoModel"):
        Paragraphs(encoder("hat", HEADS)[1])
    known = "hat_roberta, ernie_sparse, hierarchical_transformer, hat_units"
    for network, model_class in (("hat_robert", hf.HatModel), ("hat_bart", hf.HatForMaskedLM)):
        with pytest.raises(ValueError, match=f"the network is '{network}'; this class has {known}$"):
            model_class(hf.HatConfig(network, vocab_size=9))


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_generate_finds_the_hypotheses_and_scores_of_fairseq(name: str) -> None:
    model, peer = writer(name)
    end, lengths = model.decoder.output_projection.weight[EOS], set()
    for each in (model, peer):
        last = each.decoder.layer_norm or each.decoder.layers[-1].final_layer_norm
        last.bias.add_(END[name] * end / end.norm())
    source = documents([*LENGTHS, 12])
    net = {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1), **roles_of(model, source, "roles")}
    for prepare, beam, trigrams in ((False, 4, 0), (False, 1, 0), (True, 4, 3)):
        peer = peer.prepare_for_inference() if prepare else peer
        assert any(isinstance(m, PackedLinear) for m in peer.modules()) == (prepare and name == "bart")  # large maps
        options = {"beam_size": beam, "max_len_b": 15, "min_len": 3, "no_repeat_ngram_size": trigrams}
        generator = SharedMemoryGenerator([model], Vocabulary().target_dictionary, **options)
        best = [hypotheses[0] for hypotheses in generator.generate([model], {"net_input": net})]
        options = OPTIONS | {"num_beams": beam, "max_length": 17, "min_length": 4, "no_repeat_ngram_size": trigrams}
        out = peer.generate(
            source, **roles_of(model, source), **options, output_scores=True, return_dict_in_generate=True
        )
        for row, hypothesis in zip(out.sequences, best, strict=True):
            assert torch.equal(row[1:][row[1:].ne(PAD)], hypothesis["tokens"])
            lengths.add(len(hypothesis["tokens"]))
        if beam > 1:
            assert_close(out.sequences_scores, torch.stack([hypothesis["score"] for hypothesis in best]))
        cache = out.past_key_values.layers[0]
        assert len(cache.encoder_attn.keys) == len(source)
        assert len(cache.self_attn.keys) == len(source) * beam
        again = peer.generate(source, **roles_of(model, source), **options, use_cache=False)
        assert torch.equal(again, out.sequences)
    assert len(lengths) > 2
    assert min(lengths) < 16, "no text ends by itself"


LONG = """
import re, sys, torch
from transformers import AutoModel
model = AutoModel.from_pretrained(sys.argv[1], trust_remote_code=True)
assert "fairseq" not in sys.modules
tokens = torch.arange(16384)[None] % 50 + 4
def kilobytes(name):
    return int(re.search(name + r":\\s*(\\d+)", open("/proc/self/status").read())[1])
with torch.no_grad():
    model(tokens[:, :256])
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
    before = kilobytes("VmRSS")
    logits = model(tokens).logits
assert logits["word"].shape == (1, 16384, 3) and logits["text"].isfinite().all()
print(kilobytes("VmHWM") - before)
"""


@pytest.mark.slow
def test_no_quadratic_tensor_for_16384_tokens(tmp_path: Path, without_fairseq: Callable[..., str]) -> None:
    model = build("poolingformer_tiny", "--max-positions 16384 --encoder-attention-layers 0-3")
    heads = {name: {"level": HEADS[name], "classes": 3, "inner_dim": None} for name in ("text", "word")}
    hf.HatModel(config_of(model, "hat_roberta", heads=heads)).save_pretrained(tmp_path)
    kilobytes = int(without_fairseq(LONG, tmp_path))
    assert 1000 < kilobytes < 16384**2 / 1024 / 2  # half of a byte for each pair of tokens
